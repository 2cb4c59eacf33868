"""Tanh backward: the derivative, computed from the output alone.

    dz = dy - dy y^2          which is dy (1 - y^2), but NaN where dy is infinite

Price: 3 FLOPs and 3 words per number: bound by memory everywhere.
"""

from kernels.compiled import exact, flat, formula, length
from kernels.gpu import cuda
from kernels.launch import flatten, over

FLOPS, WORDS = 3, 3


@formula
def element(dy, y):
    return dy - dy * y * y  # without the 1, which would promote float32 to float64


def reference(dz, dy, y):
    dz[:] = dy - dy * y * y


@exact
def cpu(dz, dy, y):
    dz, dy, y = flat(dz), flat(dy), flat(y)
    for i in range(length(dz, dy, y)):
        dz[i] = element(dy[i], y[i])


@cuda.jit
def _launch(dz, dy, y):
    for i in range(cuda.grid(1), dz.size, cuda.gridsize(1)):
        dz[i] = element(dy[i], y[i])


def gpu(dz, dy, y):
    dz, dy, y = flatten(dz, dy, y)
    _launch[over(dz, dy, y)](dz, dy, y)
