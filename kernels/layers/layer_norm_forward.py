"""Layer norm forward: normalise each row to mean 0 and variance 1, then apply gain and bias.

    u = (x - mean of x) r,  r = 1 / sqrt(variance of x + eps)          y = gain u + bias

x, y, u (rows, width), r (rows,), gain and bias (width,): a row is one position of one sample, and needs no other. u and
r are kept for backward.
Price: 8 FLOPs per number; x read, y and u written once.
Source: Ba, Kiros & Hinton, Layer Normalization, arXiv:1607.06450.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("y (rows, width), u (rows, width), r (rows), x (rows, width), gain (width), bias (width)")


def price(y, u, r, x, gain, bias, eps):
    rows, width = x.shape
    return 8 * rows * width, 3 * rows * width + rows + 2 * width


def reference(y, u, r, x, gain, bias, eps):
    r[:] = 1 / np.sqrt(x.var(1) + eps)
    u[:] = (x - x.mean(1, keepdims=True)) * r[:, None]
    y[:] = gain * u + bias


def row(y, u, x, gain, bias, eps):
    """Write y and u of one row, and return its r. All arrays have shape (width,)."""
    one, width = x.dtype.type(1), x.dtype.type(x.size)
    mean = variance = x.dtype.type(0)
    for j in range(x.size):
        mean += x[j]
    mean /= width
    for j in range(x.size):
        variance += (x[j] - mean) * (x[j] - mean)
    r = one / math.sqrt(variance / width + eps)
    for j in range(x.size):
        u[j] = (x[j] - mean) * r
        y[j] = gain[j] * u[j] + bias[j]
    return r


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(y, u, r, x, gain, bias, eps):
    check(y, u, r, x, gain, bias)
    for i in range(x.shape[0]):
        r[i] = row_cpu(y[i], u[i], x[i], gain, bias, x.dtype.type(eps))


@cuda.jit
def _launch(y, u, r, x, gain, bias, eps):
    for i in range(cuda.grid(1), r.size, cuda.gridsize(1)):
        r[i] = row_gpu(y[i], u[i], x[i], gain, bias, x.dtype.type(eps))


def gpu(y, u, r, x, gain, bias, eps):
    check(y, u, r, x, gain, bias)
    _launch[over(r)](y, u, r, x, gain, bias, eps)
