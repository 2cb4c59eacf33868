"""Batch norm with a given mean and variance: normalise each channel by them, then apply gain and bias.

    y = gain (x - m) / sqrt(v + eps) + bias,  or no less than 0 with relu

x, y (n, c, ...), the others (c,). `batch_norm_forward` takes m and v from x itself; here they come from more samples,
such as those of all workers.
Price: 4 FLOPs per number, and every array once. Source: Ioffe & Szegedy, ICML 2015, Algorithm 1.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over, reshape
from kernels.shapes import shapes

check = shapes("y (n, c, size), x (n, c, size), mean (c), variance (c), gain (c), bias (c)")


def price(y, x, mean, variance, gain, bias, eps, relu):
    numbers = math.prod(x.shape)
    return (4 + relu) * numbers, 2 * numbers + 4 * len(gain)


def reference(y, x, mean, variance, gain, bias, eps, relu):
    m, v, g, b = (part.reshape(-1, *[1] * (x.ndim - 2)) for part in (mean, variance, gain, bias))
    z = g * (x - m) / np.sqrt(v + x.dtype.type(eps)) + b
    y[:] = np.maximum(z, 0) if relu else z


@formula
def element(x, mean, slope, bias):
    return slope * (x - mean) + bias


@exact
def cpu(y, x, mean, variance, gain, bias, eps, relu):
    samples, channels = x.shape[0], x.shape[1]
    x, y = x.reshape(samples, channels, -1), y.reshape(samples, channels, -1)
    check(y, x, mean, variance, gain, bias)
    for c in range(channels):
        slope = x.dtype.type(gain[c] / math.sqrt(variance[c] + eps))
        for n in range(samples):
            for i in range(x.shape[2]):
                z = element(x[n, c, i], mean[c], slope, bias[c])
                y[n, c, i] = 0.0 if relu and z < 0 else z


@cuda.jit
def _launch(y, x, mean, variance, gain, bias, eps, relu):
    _, channels, pixels = x.shape
    zero = x.dtype.type(0)
    for at in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        n, c, i = at // (channels * pixels), at // pixels % channels, at % pixels
        slope = gain[c] / math.sqrt(variance[c] + x.dtype.type(eps))
        z = element(x[n, c, i], mean[c], slope, bias[c])
        y[n, c, i] = zero if relu and z < zero else z


def gpu(y, x, mean, variance, gain, bias, eps, relu):
    shape = *x.shape[:2], math.prod(x.shape[2:])
    over(y, x)
    y, x = reshape(shape, y, x)
    check(y, x, mean, variance, gain, bias)
    _launch[over(y)](y, x, mean, variance, gain, bias, eps, relu)
