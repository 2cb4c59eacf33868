"""Batch norm backward, weight half: the gradients of gain and bias, which the input half also needs.

    dgain[c] = sum of dy[:, c] (x[:, c] - m) / sqrt(v + eps)        dbias[c] = sum of dy[:, c]

x, dy (n, c, ...), the others (c,); m and v are the mean and variance of the forward pass. Other layers defer this
half, W; here B begins with it, since dx needs both sums.
Price: 4 FLOPs per number, and every array once. On a GPU one block handles a channel.
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_sum
from kernels.gpu import cuda
from kernels.launch import THREADS, blocks_over, over, reshape
from kernels.shapes import shapes

check = shapes("dgain (c), dbias (c), dy (n, c, size), x (n, c, size), mean (c), variance (c)")


def price(dgain, dbias, dy, x, mean, variance, eps):
    numbers = math.prod(x.shape)
    return 4 * numbers, 2 * numbers + 4 * len(mean)


def reference(dgain, dbias, dy, x, mean, variance, eps):
    axes, shape = (0, *range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    normal = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + x.dtype.type(eps))
    dgain[:], dbias[:] = (dy * normal).sum(axes), dy.sum(axes)


@exact
def cpu(dgain, dbias, dy, x, mean, variance, eps):
    samples, channels = x.shape[0], x.shape[1]
    x, dy = x.reshape(samples, channels, -1), dy.reshape(samples, channels, -1)
    check(dgain, dbias, dy, x, mean, variance)
    for c in range(channels):
        along = total = 0.0
        for n in range(samples):
            for i in range(x.shape[2]):
                along += dy[n, c, i] * (x[n, c, i] - mean[c])
                total += dy[n, c, i]
        dgain[c] = along / math.sqrt(variance[c] + eps)
        dbias[c] = total


@cuda.jit
def _launch(dgain, dbias, dy, x, mean, variance, eps):
    scratch = cuda.shared.array(THREADS, x.dtype)
    samples, channels, pixels = x.shape
    for c in range(cuda.blockIdx.x, channels, cuda.gridDim.x):
        along = total = x.dtype.type(0)
        for at in range(cuda.threadIdx.x, samples * pixels, THREADS):
            slope = dy[at // pixels, c, at % pixels]
            along += slope * (x[at // pixels, c, at % pixels] - mean[c])
            total += slope
        along, total = block_sum(scratch, along), block_sum(scratch, total)
        if cuda.threadIdx.x == 0:
            dgain[c] = along / math.sqrt(variance[c] + x.dtype.type(eps))
            dbias[c] = total


def gpu(dgain, dbias, dy, x, mean, variance, eps):
    shape = *x.shape[:2], math.prod(x.shape[2:])
    over(dy, x)
    dy, x = reshape(shape, dy, x)
    check(dgain, dbias, dy, x, mean, variance)
    _launch[blocks_over(shape[1], x)](dgain, dbias, dy, x, mean, variance, eps)
