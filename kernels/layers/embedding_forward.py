"""Embedding forward: the sum of token embeddings and position embeddings.

    y[n, t] = table[x[n, t]] + places[t]

x (n, time) of whole numbers, table (tokens, width), places (time, width) or longer, y (n, time, width).
Price: 1 FLOP per number of y; y, the tokens, the rows of table and places are moved once.
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("y (n, time, width), x (n, time), table (tokens, width), places (>= time, width)")


def price(y, x, table, places):
    n, time, width = y.shape
    return n * time * width, 2 * n * time * width + n * time + time * width


def reference(y, x, table, places):
    y[:] = table[x] + places[: x.shape[1]]


@exact
def cpu(y, x, table, places):
    check(y, x, table, places)
    for n in range(x.shape[0]):
        for t in range(x.shape[1]):
            token = x[n, t]
            for j in range(y.shape[2]):
                y[n, t, j] = table[token, j] + places[t, j]


@cuda.jit
def _launch(y, x, table, places):
    _, time, width = y.shape
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        j, t, n = at % width, at // width % time, at // (width * time)
        y[n, t, j] = table[x[n, t], j] + places[t, j]


def gpu(y, x, table, places):
    check(y, x, table, places)
    _launch[over(y)](y, x, table, places)
