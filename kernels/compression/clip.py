"""Clip: scale a vector down to a norm that it must not exceed.

    g <- g min(1, most / |g|)

A norm of NaN compares false: then nothing is changed, and the NaN stays visible.

Price: 3 FLOPs and 3 words per number: it is read once for its length, then read and written.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.shapes import shapes

check = shapes("g (d)")

FLOPS, WORDS = 3, 3
BLOCKS = 256  # at most, and as many sums


def reference(g, most):
    size = np.sqrt(np.square(g, dtype=np.float64).sum())
    if size > most:
        g *= g.dtype.type(most / size)


@exact
def cpu(g, most):
    check(g)
    total = 0.0
    for x in g:
        total += float(x) * float(x)
    if total > most * most:
        factor = g.dtype.type(most / math.sqrt(total))
        for i in range(g.size):
            g[i] *= factor


@cuda.jit
def _squares(sums, g):
    mine = cuda.shared.array(THREADS, g.dtype)
    thread, half = cuda.threadIdx.x, THREADS // 2
    total = g.dtype.type(0)
    for i in range(cuda.grid(1), g.size, cuda.gridsize(1)):
        total += g[i] * g[i]
    mine[thread] = total
    cuda.syncthreads()
    while half:  # a tree: the second half is added to the first
        if thread < half:
            mine[thread] += mine[thread + half]
        cuda.syncthreads()
        half //= 2
    if thread == 0:
        sums[cuda.blockIdx.x] = mine[0]


@cuda.jit
def _scale(g, sums, most):
    most, total = g.dtype.type(most), g.dtype.type(0)
    for j in range(sums.size):
        total += sums[j]
    if total > most * most:
        factor = most / math.sqrt(total)
        for i in range(cuda.grid(1), g.size, cuda.gridsize(1)):
            g[i] *= factor


def gpu(g, most):
    check(g)
    blocks = min(BLOCKS, grid(len(g)))
    sums = empty(blocks, g)
    _squares[blocks, THREADS, stream_of(g)](sums, g)
    _scale[blocks, THREADS, stream_of(g)](g, sums, most)
