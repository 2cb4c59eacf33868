"""Add: the sum of two vectors, in place, as used in a reduction over ranks.

    out <- out + x

Price: 1 FLOP and 3 words per number (read out and x, write out).
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 1, 3


def reference(out, x):
    out += x


@exact
def cpu(out, x):
    for i in range(length(out, x)):
        out[i] += x[i]


@elementwise
def gpu(out, x):
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] += x[i]
