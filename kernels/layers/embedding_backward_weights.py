"""Embedding backward: sum the gradients of all occurrences of each token, and of each position.

    dtable[v] = sum over n, t with x[n, t] = v of dy[n, t]          dplaces[t] = sum over n of dy[n, t]

x (n, time), dy (n, time, width), dtable (tokens, width), dplaces (time, width). All of it is W of a split backward
pass: no layer before waits for B. On a GPU one thread sums one number over all tokens, so that the order of the sum is
fixed; atomic additions would be faster and differ from run to run.
Price: 2 FLOPs per number of dy, and every array once.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over


def price(dtable, dplaces, x, dy):
    (n, time, width), tokens = dy.shape, dtable.shape[0]
    return 2 * n * time * width, n * time * (width + 1) + (tokens + time) * width


def reference(dtable, dplaces, x, dy):
    dtable[:] = 0
    np.add.at(dtable, x, dy)
    dplaces[:] = dy.sum(0)


@exact
def cpu(dtable, dplaces, x, dy):
    dtable[:] = 0
    dplaces[:] = 0
    for n in range(x.shape[0]):
        for t in range(x.shape[1]):
            token = x[n, t]
            for j in range(dy.shape[2]):
                dtable[token, j] += dy[n, t, j]
                dplaces[t, j] += dy[n, t, j]


@cuda.jit
def _table(dtable, x, dy):
    width = dtable.shape[1]
    for at in range(cuda.grid(1), dtable.size, cuda.gridsize(1)):
        token, j = at // width, at % width
        total = dtable.dtype.type(0)
        for n in range(x.shape[0]):
            for t in range(x.shape[1]):
                if x[n, t] == token:
                    total += dy[n, t, j]
        dtable[token, j] = total


@cuda.jit
def _places(dplaces, dy):
    width = dplaces.shape[1]
    for at in range(cuda.grid(1), dplaces.size, cuda.gridsize(1)):
        t, j = at // width, at % width
        total = dplaces.dtype.type(0)
        for n in range(dy.shape[0]):
            total += dy[n, t, j]
        dplaces[t, j] = total


def gpu(dtable, dplaces, x, dy):
    _table[over(dtable)](dtable, x, dy)
    _places[over(dplaces)](dplaces, dy)
