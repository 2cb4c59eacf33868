"""Exponential moving average: move the average towards the new vector by a fixed fraction.

    z <- z + a (w - z)

With a = 1/t at the t-th call z is the arithmetic mean of all w so far; with a constant it forgets them exponentially.

Price: 3 FLOPs and 3 words per parameter (read z and w, write z).
Source: Polyak & Juditsky, SIAM Journal on Control and Optimization 30(4), 1992.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 3, 3


def reference(z, w, weight):
    z += weight * (w - z)


@formula
def element(z, w, a):
    return z + a * (w - z)


@exact
def cpu(z, w, weight):
    a = z.dtype.type(weight)
    for i in range(length(z, w)):
        z[i] = element(z[i], w[i], a)


@elementwise
def gpu(z, w, weight):
    a = z.dtype.type(weight)
    for i in range(cuda.grid(1), z.size, cuda.gridsize(1)):
        z[i] = element(z[i], w[i], a)
