"""Displacement: the difference of two vectors, scaled.

    p <- a (x - y)

With a = 1 it is how far a replica has moved since the last synchronisation; with EASGD's a the elastic force; with
a = -1 / lr an average gradient.

Price: 2 FLOPs and 3 words per number (read x and y, write p).
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 2, 3


def reference(p, x, y, factor):
    p[...] = factor * (x - y)


@formula
def element(x, y, a):
    return a * (x - y)


@exact
def cpu(p, x, y, factor):
    a = p.dtype.type(factor)
    for i in range(length(p, x, y)):
        p[i] = element(x[i], y[i], a)


@elementwise
def gpu(p, x, y, factor):
    a = p.dtype.type(factor)
    for i in range(cuda.grid(1), p.size, cuda.gridsize(1)):
        p[i] = element(x[i], y[i], a)
