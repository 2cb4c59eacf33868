"""Embedding backward: sum the gradients of all occurrences of each token, and of each position.

    dtable[v] = sum over n, t with x[n, t] = v of dy[n, t]          dplaces[t] = sum over n of dy[n, t]

x (n, time), dy (n, time, width), dtable (tokens, width), dplaces (time, width). All of it is W of a split backward
pass: no earlier layer waits for a B. On a GPU a block looks for its token in all of x, so that the order of the sum is
fixed; atomic additions would be faster, but differ from run to run.
Price: 2 FLOPs per number of dy, and every array once.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import flatten
from kernels.layers.columns import COLUMNS, ROWS, column_sum, over_columns, sum_columns
from kernels.shapes import shapes

check = shapes("dtable (tokens, width), dplaces (time, width), x (n, time), dy (n, time, width)")


def price(dtable, dplaces, x, dy):
    (n, time, width), tokens = dy.shape, dtable.shape[0]
    return 2 * n * time * width, n * time * (width + 1) + (tokens + time) * width


def reference(dtable, dplaces, x, dy):
    dtable[:] = 0
    np.add.at(dtable, x, dy)
    dplaces[:] = dy.sum(0)


@exact
def cpu(dtable, dplaces, x, dy):
    check(dtable, dplaces, x, dy)
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
    scratch = cuda.shared.array((ROWS, COLUMNS), dy.dtype)
    tokens, width = dtable.shape
    token, j = cuda.blockIdx.x % tokens, cuda.blockIdx.x // tokens * COLUMNS + cuda.threadIdx.x
    mine = dy.dtype.type(0)
    if j < width:
        for at in range(cuda.threadIdx.y, x.size, ROWS):
            if x[at] == token:
                mine += dy[at, j]
    total = column_sum(scratch, mine)
    if cuda.threadIdx.y == 0 and j < width:
        dtable[token, j] = total


def gpu(dtable, dplaces, x, dy):
    check(dtable, dplaces, x, dy)
    (n, time, width), tokens = dy.shape, dtable.shape[0]
    (places,) = flatten(dplaces)
    _table[over_columns(dtable, tokens)](dtable, x.reshape(-1), dy.reshape(n * time, width))
    sum_columns(places, dy.reshape(n, time * width))
