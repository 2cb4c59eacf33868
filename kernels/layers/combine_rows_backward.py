"""Combine rows backward: the gradients of the rows that experts return, and of their weights.

    drows[place[t, c]] = weight[t, c] dy[t]          dweight[t, c] = dy[t] . rows[place[t, c]]

A choice whose place is negative has no row, and its weight has gradient 0. dy (n, width), rows and drows (m, width),
place, weight and dweight (n, k). Each row belongs to one choice, so drows is written completely; the gradient of x in
`combine_rows` is dy itself.
Price: 3 FLOPs per number of rows; every array once.
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("drows (m, width), dweight (n, k), dy (n, width), rows (m, width), place (n, k), weight (n, k)")


def price(drows, dweight, dy, rows, place, weight):
    (m, width), (n, k) = rows.shape, place.shape
    return 3 * m * width, (2 * m + n) * width + 3 * n * k


def reference(drows, dweight, dy, rows, place, weight):
    token, choice = np.nonzero(place >= 0)
    at = place[token, choice]
    drows[at] = weight[token, choice, None] * dy[token]
    dweight[:] = 0
    dweight[token, choice] = (dy[token] * rows[at]).sum(1)


def one(drows, dy, rows, at, weight):
    """Write row `at` of drows, given dy, (width,); return the gradient of its weight."""
    total = dy.dtype.type(0)
    if at >= 0:
        for j in range(dy.size):
            drows[at, j] = weight * dy[j]
            total += dy[j] * rows[at, j]
    return total


one_cpu, one_gpu = formula(one), cuda.jit(device=True)(one)


@exact
def cpu(drows, dweight, dy, rows, place, weight):
    check(drows, dweight, dy, rows, place, weight)
    for t in range(place.shape[0]):
        for c in range(place.shape[1]):
            dweight[t, c] = one_cpu(drows, dy[t], rows, place[t, c], weight[t, c])


@cuda.jit
def _launch(drows, dweight, dy, rows, place, weight):
    k = place.shape[1]
    for choice in range(cuda.grid(1), place.size, cuda.gridsize(1)):
        t, c = choice // k, choice % k
        dweight[t, c] = one_gpu(drows, dy[t], rows, place[t, c], weight[t, c])


def gpu(drows, dweight, dy, rows, place, weight):
    check(drows, dweight, dy, rows, place, weight)
    _launch[over(dweight, place)](drows, dweight, dy, rows, place, weight)
