"""Gather: the numbers at some positions, as a dense vector.

    out <- v[index]

Price: 3 words per number.
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import over


def price(out, v, index):
    return 0, 3 * len(index)


def reference(out, v, index):
    out[:] = v[index]


@exact
def cpu(out, v, index):
    for j in range(length(out, index)):
        out[j] = v[index[j]]


@cuda.jit
def _launch(out, v, index):
    for j in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[j] = v[index[j]]


def gpu(out, v, index):
    _launch[over(out, index)](out, v, index)
