"""Convolution backward, input half: the gradient of the inputs.

    dx[n, c, i, j] = sum over o, u, v of w[o, c, u, v] dz[n, o, i - u + k/2, j - v + k/2]

dz (n, o, h, w), w (o, c, k, k), dx (n, c, h, w); terms with a dz outside the image are left out.
B of a split backward pass; see dense_backward_input.
Price: 2 n o c k k h w FLOPs, and every array once.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.layers.patches import fold
from kernels.shapes import shapes

check = shapes("dx (n, c, height, width), dz (n, o, height, width), w (o, c, k, k)")


def price(dx, dz, w):
    (n, o, height, width), (_, c, k, _) = dz.shape, w.shape
    pixels = n * height * width
    return 2 * pixels * o * c * k * k, pixels * (c + o) + o * c * k * k


def reference(dx, dz, w):
    (height, width), k = dx.shape[2:], w.shape[2]
    wide = np.zeros((*dx.shape[:2], height + k - 1, width + k - 1), dx.dtype)
    for u, v in np.ndindex(k, k):
        wide[:, :, u : u + height, v : v + width] += np.einsum("noij,oc->ncij", dz, w[:, :, u, v])
    dx[:] = wide[:, :, k // 2 : k // 2 + height, k // 2 : k // 2 + width]


@exact
def cpu(dx, dz, w):
    check(dx, dz, w)
    outputs, channels, k, _ = w.shape
    samples, _, height, width = dz.shape
    filters = w.reshape(outputs, channels * k * k)
    patches = np.empty((channels * k * k, height * width), dz.dtype)
    for n in range(samples):
        np.dot(filters.T, dz[n].reshape(outputs, height * width), patches)
        fold(dx[n], patches, k)


@cuda.jit
def _launch(dx, dz, w):
    _, channels, height, width = dx.shape
    k = w.shape[2]
    for at in range(cuda.grid(1), dx.size, cuda.gridsize(1)):
        j, i = at % width, at // width % height
        c, n = at // (width * height) % channels, at // (width * height * channels)
        total = dx.dtype.type(0)
        for o in range(w.shape[0]):
            for u in range(k):
                for v in range(k):
                    row, column = i - u + k // 2, j - v + k // 2
                    if 0 <= row < height and 0 <= column < width:
                        total += w[o, c, u, v] * dz[n, o, row, column]
        dx[n, c, i, j] = total


def gpu(dx, dz, w):
    check(dx, dz, w)
    _launch[over(dx)](dx, dz, w)
