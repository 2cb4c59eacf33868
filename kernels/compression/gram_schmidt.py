"""Gram-Schmidt: orthonormalise the columns of a matrix.

    p_j <- p_j - sum over k < j of (p_k . p_j) p_k        p_j <- p_j / |p_j|        twice, for j = 0, 1, ...

p (rows, columns), a few columns. Twice, since cancellation leaves mostly rounding errors of a nearly dependent column.
A column that depends on those before it (less than `least` of its norm remains) becomes 0: the rest is rounding, and
may be parallel to an earlier column.

Price: 8 rows columns^2 FLOPs, p once. On a CPU sums are float64; on a GPU one block does it all.
Source: Giraud, Langou, Rozloznik & van den Eshof, Numerische Mathematik 101, 2005 (twice is enough).
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_sum
from kernels.gpu import cuda
from kernels.launch import THREADS, stream_of
from kernels.shapes import shapes

check = shapes("p (rows, columns)")


def price(p, least):
    rows, columns = p.shape
    return 8 * rows * columns**2, 2 * rows * columns


def reference(p, least):
    for j in range(p.shape[1]):
        for _ in range(2):
            x = p[:, j].astype(np.float64)
            before = np.linalg.norm(x)
            for k in range(j):
                x -= (p[:, k].astype(np.float64) @ x) * p[:, k]
            after = np.linalg.norm(x)
            p[:, j] = 0 if after <= least * before else x / after


@exact
def cpu(p, least):
    check(p)
    rows, columns = p.shape
    x = np.empty(rows)
    for j in range(columns):
        for _ in range(2):
            before = after = 0.0
            for i in range(rows):
                x[i] = p[i, j]
                before += x[i] * x[i]
            for k in range(j):
                along = 0.0
                for i in range(rows):
                    along += p[i, k] * x[i]
                for i in range(rows):
                    x[i] -= along * p[i, k]
            for i in range(rows):
                after += x[i] * x[i]
            before, after = math.sqrt(before), math.sqrt(after)
            for i in range(rows):
                p[i, j] = 0.0 if after <= least * before else x[i] / after


@cuda.jit
def _launch(p, least):
    scratch = cuda.shared.array(THREADS, p.dtype)
    thread, (rows, columns) = cuda.threadIdx.x, p.shape
    zero, least = p.dtype.type(0), p.dtype.type(least)
    for j in range(columns):
        for _ in range(2):
            before = after = zero
            for i in range(thread, rows, THREADS):
                before += p[i, j] * p[i, j]
            before = math.sqrt(block_sum(scratch, before))
            for k in range(j):
                along = zero
                for i in range(thread, rows, THREADS):
                    along += p[i, k] * p[i, j]
                along = block_sum(scratch, along)
                for i in range(thread, rows, THREADS):  # every thread its own rows: no synchronisation
                    p[i, j] -= along * p[i, k]
            for i in range(thread, rows, THREADS):
                after += p[i, j] * p[i, j]
            after = math.sqrt(block_sum(scratch, after))
            for i in range(thread, rows, THREADS):
                p[i, j] = zero if after <= least * before else p[i, j] / after


def gpu(p, least):
    check(p)
    _launch[1, THREADS, stream_of(p)](p, least)
