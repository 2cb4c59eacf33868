"""Mix: a convex combination of two vectors, for gossip averaging.

    x <- a x + b y

Averaging with a neighbour is a = b = 1/2. Several neighbours are mixed in one after the other, the first with the
rank's own weight as a, the others with a = 1.

Price: 3 FLOPs and 3 words per parameter (read x and y, write x).
Source: DeGroot, Journal of the American Statistical Association 69(345), 1974 (consensus by repeated averaging).
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 3, 3


def reference(x, y, own, other):
    x[...] = own * x + other * y


@formula
def element(x, y, a, b):
    return a * x + b * y


@exact
def cpu(x, y, own, other):
    a, b = x.dtype.type(own), x.dtype.type(other)
    for i in range(length(x, y)):
        x[i] = element(x[i], y[i], a, b)


@elementwise
def gpu(x, y, own, other):
    a, b = x.dtype.type(own), x.dtype.type(other)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        x[i] = element(x[i], y[i], a, b)
