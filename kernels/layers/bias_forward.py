"""Bias forward: bias and ReLU after a product whose parts were summed elsewhere.

    y = z + b,  or  max(0, z + b) with relu          y and z (n, o), b (o,); y may be z itself

Where one rank has all of a product, `dense_forward` does this in the same pass. A NaN passes through the ReLU.
Price: 1 or 2 FLOPs and 2 words per number, and b once.
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("y (n, o), z (n, o), b (o)")


def price(y, z, b, relu):
    n, o = y.shape
    return (1 + relu) * n * o, 2 * n * o + o


@formula
def element(z, b, relu):
    a = z + b
    return 0.0 if relu and a < 0 else a


def reference(y, z, b, relu):
    a = z + b
    y[:] = np.maximum(a, 0) if relu else a


@exact
def cpu(y, z, b, relu):
    check(y, z, b)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = element(z[i, j], b[j], relu)


@cuda.jit
def _launch(y, z, b, relu):
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        i, j = at // b.size, at % b.size
        y[i, j] = element(z[i, j], b[j], relu)


def gpu(y, z, b, relu):
    check(y, z, b)
    _launch[over(y, z)](y, z, b, relu)
