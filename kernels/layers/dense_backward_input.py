"""Dense backward, input half: the gradient of the inputs, which the layer before waits for.

    dx = dz w^T          dz (n, o), w (i, o), dx (n, i)

This is B of a split backward pass: a pipeline sends dx on at once and leaves the weights' half (W) for an idle
moment. It is the only product of the backward pass that reads the weights.
Price: 2 n i o FLOPs, and every array once.
Source: Oh et al., "Out-of-Order BackProp", EuroSys 2022, and Qi et al., Zero Bubble Pipeline
Parallelism, ICLR 2024, for the split.
"""

import numpy as np

from kernels.compiled import exact
from kernels.layers.tiles import product
from kernels.shapes import shapes

check = shapes("dx (n, i), dz (n, o), w (i, o)")


def price(dx, dz, w):
    (n, o), i = dz.shape, w.shape[0]
    return 2 * n * i * o, n * o + i * o + n * i


def reference(dx, dz, w):
    dx[:] = dz @ w.T


@exact
def cpu(dx, dz, w):
    check(dx, dz, w)
    np.dot(dz, w.T, dx)


def gpu(dx, dz, w):
    check(dx, dz, w)
    product(dx, dz, w.T)
