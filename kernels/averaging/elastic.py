"""Elastic averaging (EASGD): move replica and centre towards each other by the same amount.

    p <- a (x - c)        c <- c + p

The displacement p is sent back to the replica, which subtracts it: x <- x - p. Their sum is conserved.

Price: 3 FLOPs and 4 words per parameter (read x and c, write p and c).
Source: Zhang, Choromanska & LeCun, NIPS 2015, Algorithm 1.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 3, 4


def reference(p, c, x, pull):
    p[...] = pull * (x - c)
    c += p


@formula
def element(c, x, pull):
    p = pull * (x - c)
    return p, c + p


@exact
def cpu(p, c, x, pull):
    a = c.dtype.type(pull)
    for i in range(length(p, c, x)):
        p[i], c[i] = element(c[i], x[i], a)


@elementwise
def gpu(p, c, x, pull):
    a = c.dtype.type(pull)
    for i in range(cuda.grid(1), c.size, cuda.gridsize(1)):
        p[i], c[i] = element(c[i], x[i], a)
