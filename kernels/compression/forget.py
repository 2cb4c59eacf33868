"""Forget: set the coordinates at some positions to zero.

    v[index] <- 0

Price: 2 words per position.
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("v (d), index (k)")


def price(v, index):
    return 0, 2 * len(index)


def reference(v, index):
    v[index] = 0


@exact
def cpu(v, index):
    check(v, index)
    for i in index:
        v[i] = 0


@cuda.jit
def _launch(v, index):
    for j in range(cuda.grid(1), index.size, cuda.gridsize(1)):
        v[index[j]] = 0


def gpu(v, index):
    check(v, index)
    _launch[over(index)](v, index)
