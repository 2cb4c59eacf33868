"""Descend atomically: a step down the gradient in memory that others change at the same moment, losing nothing.

    w_v <- w_v - rate g_v          each addition whole, whatever others add meanwhile

The same bits as `kernels/updates/sgd.py` where nobody else is. An atomic addition keeps the coordinate's cache line
to itself for its time, so this is several times slower; without it, of two additions to one number one may be lost.
Price: 2 FLOPs and 3 words per parameter, as without.
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import over
from kernels.sparse.rows import atomic_add

FLOPS, WORDS = 2, 3


def reference(w, g, rate):
    w -= rate * g


@exact
def cpu(w, g, rate):
    rate = w.dtype.type(rate)
    for v in range(length(w, g)):
        atomic_add(w, v, -(rate * g[v]))


@cuda.jit
def _launch(w, g, rate):
    rate = w.dtype.type(rate)
    for v in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        cuda.atomic.add(w, v, -(rate * g[v]))


def gpu(w, g, rate):
    _launch[over(w, g)](w, g, rate)
