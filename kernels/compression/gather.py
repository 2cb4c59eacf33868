"""Gather: the numbers at some positions, as a dense vector.

    out <- v[index]

Price: 3 words per number.
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (k), v (d), index (k)")


def price(out, v, index):
    return 0, 3 * len(index)


def reference(out, v, index):
    out[:] = v[index]


@exact
def cpu(out, v, index):
    check(out, v, index)
    for j in range(out.size):
        out[j] = v[index[j]]


@cuda.jit
def _launch(out, v, index):
    for j in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[j] = v[index[j]]


def gpu(out, v, index):
    check(out, v, index)
    _launch[over(out)](out, v, index)
