"""Scale: multiply a vector by a number, for example a sum over ranks by 1 / N.

    x <- a x

Price: 1 FLOP and 2 words per number (read x, write x).
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("x (d)")

FLOPS, WORDS = 1, 2


def reference(x, factor):
    x *= factor


@exact
def cpu(x, factor):
    check(x)
    a = x.dtype.type(factor)
    for i in range(x.size):
        x[i] *= a


@cuda.jit
def _launch(x, factor):
    a = x.dtype.type(factor)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] *= a


def gpu(x, factor):
    check(x)
    _launch[over(x)](x, factor)
