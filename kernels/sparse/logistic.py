"""Logistic: the mean loss of some rows, and its gradient as a dense vector.

    g <- mean over rows of the gradient of f_i at w          returns the mean of f_i(w)

g, w, penalty (d,), rows (k,); f_i and the rest as in `kernels/sparse/rows.py`. g is 0 at all other coordinates.
Price: 10 FLOPs and 9 words for each number of these rows, and 3 words for each coordinate, which is where the time
goes if rows are sparse: `kernels/sparse/hogwild.py` never makes a g.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, over, stream_of
from kernels.shapes import shapes
from kernels.sparse.rows import gather, gather_gpu, gradients, numbers

check = shapes("g (d), w (d), target (n), indptr (n + 1), index (size), values (size), penalty (d)")


def price(g, w, rows, target, indptr, index, values, penalty):
    count = numbers(rows, indptr)
    return 10 * count + 40 * len(rows), 9 * count + 3 * len(w)


def reference(g, w, rows, target, indptr, index, values, penalty):
    losses, slopes = gradients(w, rows, target, indptr, index, values, penalty)
    g[:] = slopes.sum(0) / np.maximum(1, len(rows))
    return float(losses.sum() / max(1, len(rows)))


@exact
def cpu(g, w, rows, target, indptr, index, values, penalty):
    check(g, w, target, indptr, index, values, penalty)
    g[:] = 0
    if rows.size == 0:
        return 0.0
    loss = 0.0
    for i in rows:
        loss += gather(g, w, i, target, indptr, index, values, penalty)
    n = w.dtype.type(rows.size)
    for v in range(g.size):
        g[v] = g[v] / n
    return loss / rows.size


@cuda.jit
def _launch(losses, g, w, rows, target, indptr, index, values, penalty):
    for k in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        losses[k] = gather_gpu(g, w, rows[k], target, indptr, index, values, penalty)


@cuda.jit
def _mean(g, n):
    n = g.dtype.type(n)
    for v in range(cuda.grid(1), g.size, cuda.gridsize(1)):
        g[v] = g[v] / n


def gpu(g, w, rows, target, indptr, index, values, penalty):
    check(g, w, target, indptr, index, values, penalty)
    g[:] = 0
    losses = empty(len(rows), g)
    _launch[grid(len(rows)), THREADS, stream_of(g)](losses, g, w, rows, target, indptr, index, values, penalty)
    n = max(1, len(rows))
    _mean[over(g)](g, n)
    return float(losses.sum()) / n
