"""Squared error: the loss, and the gradient of the outputs.

    loss = mean over samples of 1/2 |y - t|^2          dy = (y - t) / n

y, t, dy (n, outputs); dy is the gradient of the mean loss.
Price: 4 FLOPs and 3 words per number.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.capturing import sum_on_host
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("dy (n, outputs), y (n, outputs), t (n, outputs)")

FLOPS, WORDS = 4, 3


def reference(dy, y, t):
    dy[:] = (y - t) / len(y)
    return float(np.square(y - t).sum() / (2 * len(y)))


def row(dy, y, t, samples):
    """Write dy of one sample, and return its loss. dy, y and t have shape (outputs,)."""
    loss = y.dtype.type(0)
    for j in range(y.size):
        difference = y[j] - t[j]
        dy[j] = difference / samples
        loss += difference * difference
    return loss * y.dtype.type(0.5)


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(dy, y, t):
    check(dy, y, t)
    n = y.shape[0]
    total = 0.0
    for i in range(n):
        total += row_cpu(dy[i], y[i], t[i], y.dtype.type(n))
    return total / n


@cuda.jit
def _launch(losses, dy, y, t):
    for i in range(cuda.grid(1), losses.size, cuda.gridsize(1)):
        losses[i] = row_gpu(dy[i], y[i], t[i], y.dtype.type(losses.size))


def gpu(dy, y, t):
    check(dy, y, t)
    if not len(y):
        return math.nan  # as the mean of no losses
    losses = empty(len(y), dy)
    _launch[over(losses)](losses, dy, y, t)
    return sum_on_host(losses, len(y))
