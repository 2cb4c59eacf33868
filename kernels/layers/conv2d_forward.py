"""Convolution forward, with bias and ReLU in the same pass.

    y[n, o, i, j] = b[o] + sum over c, u, v of w[o, c, u, v] x[n, c, i + u - k/2, j + v - k/2]

x (n, c, h, w), w (o, c, k, k) with k odd, b (o,), y (n, o, h, w): outputs as large as inputs, zeros outside, and
0 times NaN is NaN. On a CPU each image becomes patches and one BLAS product; on a GPU one thread sums one
output.
Price: 2 n o c k k h w FLOPs, and every array once.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.layers.patches import unfold
from kernels.shapes import shapes

check = shapes("y (n, o, height, width), x (n, c, height, width), w (o, c, k, k), b (o)")


def price(y, x, w, b, relu):
    (n, o, height, width), (_, c, k, _) = y.shape, w.shape
    pixels = n * height * width
    return 2 * pixels * o * c * k * k + (1 + relu) * pixels * o, pixels * (c + o) + o * c * k * k + o


def reference(y, x, w, b, relu):
    k = w.shape[2]
    edge = (k // 2, k // 2)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), edge, edge)), (k, k), (2, 3))
    z = np.einsum("ncijuv,ocuv->noij", windows, w) + b[:, None, None]
    y[:] = np.maximum(z, 0) if relu else z


@exact
def cpu(y, x, w, b, relu):
    check(y, x, w, b)
    samples, channels, height, width = x.shape
    k = w.shape[2]
    filters = w.reshape(w.shape[0], channels * k * k)
    patches = np.empty((channels * k * k, height * width), x.dtype)
    for n in range(samples):
        unfold(patches, x[n], k)
        outputs = y[n].reshape(w.shape[0], height * width)
        np.dot(filters, patches, outputs)
        for o in range(outputs.shape[0]):
            for p in range(outputs.shape[1]):
                z = outputs[o, p] + b[o]
                outputs[o, p] = 0.0 if relu and z < 0 else z


@cuda.jit
def _launch(y, x, w, b, relu):
    _, outputs, height, width = y.shape
    k, zero = w.shape[2], x.dtype.type(0)
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        j, i = at % width, at // width % height
        o, n = at // (width * height) % outputs, at // (width * height * outputs)
        z = b[o]
        for c in range(w.shape[1]):
            for u in range(k):
                for v in range(k):
                    row, column = i + u - k // 2, j + v - k // 2
                    inside = 0 <= row < height and 0 <= column < width
                    z += w[o, c, u, v] * (x[n, c, row, column] if inside else zero)
        y[n, o, i, j] = 0.0 if relu and z < 0 else z


def gpu(y, x, w, b, relu):
    check(y, x, w, b)
    _launch[over(y)](y, x, w, b, relu)
