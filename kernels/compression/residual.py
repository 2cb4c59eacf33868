"""Residual: the part of a vector that a code left out, for error feedback.

    v <- v - q

q is what the receivers decode of v. Added to the next gradient, the residual is sent later instead of never.

Price: 1 FLOP and 3 words per element (read v and q, write v).
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 1, 3


def reference(v, q):
    v -= q


@formula
def element(v, q):
    return v - q


@exact
def cpu(v, q):
    for i in range(length(v, q)):
        v[i] = element(v[i], q[i])


@elementwise
def gpu(v, q):
    for i in range(cuda.grid(1), v.size, cuda.gridsize(1)):
        v[i] = element(v[i], q[i])
