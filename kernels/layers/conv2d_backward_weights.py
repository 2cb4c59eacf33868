"""Convolution backward, weight half: the gradients of filters and biases.

    dw[o, c, u, v] = sum over n, i, j of dz[n, o, i, j] x[n, c, i + u - k/2, j + v - k/2]
    db[o] = sum over n, i, j of dz[n, o, i, j]

x (n, c, h, w), dz (n, o, h, w), dw (o, c, k, k), db (o,); x is 0 outside.
W of a split backward pass; see dense_backward_weights. On a GPU one block handles a weight.
Price: 2 n o c k k h w FLOPs, and every array once.
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_sum
from kernels.gpu import cuda
from kernels.launch import THREADS, blocks_over
from kernels.layers.patches import unfold
from kernels.shapes import shapes

check = shapes("dw (o, c, k, k), db (o), x (n, c, height, width), dz (n, o, height, width)")


def price(dw, db, x, dz):
    (n, o, height, width), (_, c, k, _) = dz.shape, dw.shape
    pixels = n * height * width
    return 2 * pixels * o * c * k * k + pixels * o, pixels * (c + o) + o * c * k * k + o


def reference(dw, db, x, dz):
    k = dw.shape[2]
    edge = (k // 2, k // 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), edge, edge)), (k, k), (2, 3))
    dw[:] = np.einsum("ncijuv,noij->ocuv", windows, dz)
    db[:] = dz.sum((0, 2, 3))


@exact
def cpu(dw, db, x, dz):
    check(dw, db, x, dz)
    outputs, channels, k, _ = dw.shape
    samples, _, height, width = x.shape
    filters = dw.reshape(outputs, channels * k * k)
    patches = np.empty((channels * k * k, height * width), x.dtype)
    filters[:] = 0
    db[:] = 0
    for n in range(samples):
        unfold(patches, x[n], k)
        slopes = dz[n].reshape(outputs, height * width)
        filters += np.dot(slopes, patches.T)
        for o in range(outputs):
            db[o] += slopes[o].sum()


@cuda.jit
def _launch(dw, db, x, dz):
    scratch, zero = cuda.shared.array(THREADS, dw.dtype), dw.dtype.type(0)
    _, channels, k, _ = dw.shape
    samples, _, height, width = x.shape
    for at in range(cuda.blockIdx.x, dw.size, cuda.gridDim.x):
        v, u = at % k, at // k % k
        c, o = at // (k * k) % channels, at // (k * k * channels)
        total = everything = dw.dtype.type(0)
        for line in range(cuda.threadIdx.x, samples * height, THREADS):
            n, i = line // height, line % height
            row = i + u - k // 2
            for j in range(width):
                slope = dz[n, o, i, j]
                column = j + v - k // 2
                everything += slope
                inside = 0 <= row < height and 0 <= column < width
                total += slope * (x[n, c, row, column] if inside else zero)
        total, everything = block_sum(scratch, total), block_sum(scratch, everything)
        if cuda.threadIdx.x == 0:
            dw[o, c, u, v] = total
            if at % (channels * k * k) == 0:  # one block per filter
                db[o] = everything


def gpu(dw, db, x, dz):
    check(dw, db, x, dz)
    _launch[blocks_over(math.prod(dw.shape), dw)](dw, db, x, dz)
