"""Batch norm forward: normalise each channel over the batch, then apply gain and bias.

    m[c] = mean of x[:, c]        v[c] = mean of (x[:, c] - m[c])^2        over samples and pixels
    y = gain (x - m) / sqrt(v + eps) + bias,  or no less than 0 with relu

x, y (n, c, ...): images (n, c, h, w) or flat features (n, c); mean, variance, gain, bias (c,). v is summed from the
distances to m: as the mean of x^2 minus m^2 it would lose all digits of float32 where m is a thousand times sqrt(v).
On a CPU sums are float64; on a GPU one block handles a channel, so few channels leave most of the GPU idle.
Price: 7 FLOPs per number, and every array once. Source: Ioffe & Szegedy, ICML 2015, Algorithm 1.
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_sum
from kernels.gpu import cuda
from kernels.launch import THREADS, blocks_over, over, reshape
from kernels.shapes import shapes

check = shapes("y (n, c, size), mean (c), variance (c), x (n, c, size), gain (c), bias (c)")


def price(y, mean, variance, x, gain, bias, eps, relu):
    numbers = math.prod(x.shape)
    return (7 + relu) * numbers, 2 * numbers + 4 * len(gain)


def reference(y, mean, variance, x, gain, bias, eps, relu):
    axes = (0, *range(2, x.ndim))
    mean[:], variance[:] = x.mean(axes), x.var(axes)
    m, v, g, b = (part.reshape(-1, *[1] * (x.ndim - 2)) for part in (mean, variance, gain, bias))
    z = g * (x - m) / np.sqrt(v + x.dtype.type(eps)) + b
    y[:] = np.maximum(z, 0) if relu else z


@exact
def cpu(y, mean, variance, x, gain, bias, eps, relu):
    samples, channels = x.shape[0], x.shape[1]
    x, y = x.reshape(samples, channels, -1), y.reshape(samples, channels, -1)
    check(y, mean, variance, x, gain, bias)
    numbers = samples * x.shape[2]
    for c in range(channels):
        total = 0.0
        for n in range(samples):
            for value in x[n, c]:
                total += value
        mean[c] = m = x.dtype.type(total / numbers)
        total = 0.0
        for n in range(samples):
            for value in x[n, c]:
                total += (value - m) ** 2
        variance[c] = total / numbers
        slope = x.dtype.type(gain[c] / math.sqrt(variance[c] + eps))
        for n in range(samples):
            for i in range(x.shape[2]):
                z = slope * (x[n, c, i] - m) + bias[c]
                y[n, c, i] = 0.0 if relu and z < 0 else z


@cuda.jit
def _launch(y, mean, variance, x, gain, bias, eps, relu):
    scratch = cuda.shared.array(THREADS, x.dtype)
    samples, channels, pixels = x.shape
    numbers, zero = samples * pixels, x.dtype.type(0)
    for c in range(cuda.blockIdx.x, channels, cuda.gridDim.x):
        mine = zero
        for at in range(cuda.threadIdx.x, numbers, THREADS):
            mine += x[at // pixels, c, at % pixels]
        m = block_sum(scratch, mine) / x.dtype.type(numbers)
        mine = zero
        for at in range(cuda.threadIdx.x, numbers, THREADS):
            distance = x[at // pixels, c, at % pixels] - m
            mine += distance * distance
        v = block_sum(scratch, mine) / x.dtype.type(numbers)
        slope = gain[c] / math.sqrt(v + x.dtype.type(eps))
        for at in range(cuda.threadIdx.x, numbers, THREADS):
            z = slope * (x[at // pixels, c, at % pixels] - m) + bias[c]
            y[at // pixels, c, at % pixels] = zero if relu and z < zero else z
        if cuda.threadIdx.x == 0:
            mean[c], variance[c] = m, v


def gpu(y, mean, variance, x, gain, bias, eps, relu):
    shape = *x.shape[:2], math.prod(x.shape[2:])
    over(y, x)
    y, x = reshape(shape, y, x)
    check(y, mean, variance, x, gain, bias)
    _launch[blocks_over(shape[1], x)](y, mean, variance, x, gain, bias, eps, relu)
