"""Atomic descent: a gradient step in shared memory that loses no concurrent update.

    w_v <- w_v - rate g_v          each addition atomic

Without concurrency it equals `kernels/updates/sgd.py`, bit for bit. An atomic addition locks the coordinate's cache
line, so this is several times slower; without it, one of two concurrent additions to a number may be lost.
Price: 2 FLOPs and 3 words per parameter, as without atomic additions.
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import elementwise
from kernels.sparse.rows import atomic_add

FLOPS, WORDS = 2, 3


def reference(w, g, rate):
    w -= rate * g


@exact
def cpu(w, g, rate):
    rate = w.dtype.type(rate)
    for v in range(length(w, g)):
        atomic_add(w, v, -(rate * g[v]))


@elementwise
def gpu(w, g, rate):
    rate = w.dtype.type(rate)
    for v in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        cuda.atomic.add(w, v, -(rate * g[v]))
