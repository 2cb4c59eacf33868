"""Scatter-add: add numbers at given positions.

    out[index] <- out[index] + values

Positions are distinct, so no synchronisation is needed and the order does not matter.

Price: 1 FLOP and 4 words per number sent, however long `out` is; adding P messages costs P k and not P d.
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), index (k), values (k)")


def price(out, index, values):
    return len(index), 4 * len(index)


def reference(out, index, values):
    out[index] += values


@exact
def cpu(out, index, values):
    check(out, index, values)
    for j in range(index.size):
        out[index[j]] += values[j]


@cuda.jit
def _launch(out, index, values):
    for j in range(cuda.grid(1), index.size, cuda.gridsize(1)):
        out[index[j]] += values[j]


def gpu(out, index, values):
    check(out, index, values)
    _launch[over(index)](out, index, values)
