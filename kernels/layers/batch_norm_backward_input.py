"""Batch norm backward, input half: the gradient of the inputs, which the layer before waits for.

    dx = gain / s (dy - dbias / N - (x - m) dgain / (s N))        s = sqrt(v + eps), N numbers in a channel

x, dy, dx (n, c, ...), the others (c,). Every input affects all outputs of its channel: shifting or scaling a whole
channel changes no output, so dx has neither component. They are removed by dbias and dgain, which
`batch_norm_backward_weights` has summed before.
Price: 5 FLOPs and 3 words per number: bound by memory everywhere. Source: Ioffe & Szegedy, ICML 2015.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over, reshape
from kernels.shapes import shapes

check = shapes(
    "dx (n, c, size), dy (n, c, size), x (n, c, size), mean (c), variance (c), gain (c), dgain (c), dbias (c)"
)


def price(dx, dy, x, mean, variance, gain, dgain, dbias, eps):
    numbers = math.prod(x.shape)
    return 5 * numbers, 3 * numbers + 5 * len(gain)


def reference(dx, dy, x, mean, variance, gain, dgain, dbias, eps):
    shape = (-1, *[1] * (x.ndim - 2))
    m, v, g, dg, db = (part.reshape(shape) for part in (mean, variance, gain, dgain, dbias))
    s, numbers = np.sqrt(v + x.dtype.type(eps)), x.dtype.type(x.size // len(gain))
    dx[:] = g / s * (dy - db / numbers - (x - m) * dg / (s * numbers))


@formula
def element(dy, distance, s, gain, dgain, dbias, numbers):
    return gain / s * (dy - dbias / numbers - distance * (dgain / (s * numbers)))


@exact
def cpu(dx, dy, x, mean, variance, gain, dgain, dbias, eps):
    samples, channels = x.shape[0], x.shape[1]
    shape = samples, channels, -1
    dx, dy, x = dx.reshape(shape), dy.reshape(shape), x.reshape(shape)
    check(dx, dy, x, mean, variance, gain, dgain, dbias)
    numbers = x.dtype.type(samples * x.shape[2])
    for n in range(samples):
        for c in range(channels):
            s = x.dtype.type(math.sqrt(variance[c] + eps))
            for i in range(x.shape[2]):
                distance = x[n, c, i] - mean[c]
                dx[n, c, i] = element(dy[n, c, i], distance, s, gain[c], dgain[c], dbias[c], numbers)


@cuda.jit
def _launch(dx, dy, x, mean, variance, gain, dgain, dbias, eps):
    samples, channels, pixels = x.shape
    numbers = x.dtype.type(samples * pixels)
    for at in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        n, c, i = at // (channels * pixels), at // pixels % channels, at % pixels
        s = math.sqrt(variance[c] + x.dtype.type(eps))
        distance = x[n, c, i] - mean[c]
        dx[n, c, i] = element(dy[n, c, i], distance, s, gain[c], dgain[c], dbias[c], numbers)


def gpu(dx, dy, x, mean, variance, gain, dgain, dbias, eps):
    shape = *x.shape[:2], math.prod(x.shape[2:])
    over(dx, dy, x)
    dx, dy, x = reshape(shape, dx, dy, x)
    check(dx, dy, x, mean, variance, gain, dgain, dbias)
    _launch[over(dx)](dx, dy, x, mean, variance, gain, dgain, dbias, eps)
