"""Norms: the norm of each segment of a vector.

    out[r] <- max |v_i|  (order 0),  sum |v_i|  (order 1),  sqrt(sum v_i^2)  (order 2)        over the i of segment r

v (d,), out (segments,), edges (segments + 1,). An empty segment has norm 0, one with a NaN has norm NaN.
Price: 2 FLOPs per number, and it is read once. On a CPU sums are float64; on a GPU one block handles a segment.
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_largest, block_sum, over_segments, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("out (r), v (d), edges (r + 1)")


def price(out, v, edges, order):
    return 2 * len(v), len(v) + len(out)


def reference(out, v, edges, order):
    kind = {0: np.inf, 1: 1, 2: 2}[order]
    for r, segment in enumerate(pieces(edges)):
        out[r] = np.linalg.norm(v[segment].astype(np.float64), kind) if len(v[segment]) else 0


@exact
def cpu(out, v, edges, order):
    check(out, v, edges)
    for r in range(out.size):
        segment = v[edges[r] : edges[r + 1]]
        total = 0.0
        if order == 0:
            for x in segment:
                size = abs(x)
                if size > total or size != size:  # no number compares greater than NaN
                    total = float(size)
        elif order == 1:
            for x in segment:
                total += abs(x)
        else:
            for x in segment:
                total += float(x) * float(x)
            total = math.sqrt(total)
        out[r] = total


@cuda.jit
def _launch(out, v, edges, order):
    scratch = cuda.shared.array(THREADS, v.dtype)
    for r in range(cuda.blockIdx.x, out.size, cuda.gridDim.x):
        total = v.dtype.type(0)
        for i in range(edges[r] + cuda.threadIdx.x, edges[r + 1], THREADS):
            size = abs(v[i])
            if order == 1:
                total += size
            elif order == 2:
                total += size * size
            elif size > total or size != size:
                total = size
        total = block_sum(scratch, total) if order else block_largest(scratch, total)
        if cuda.threadIdx.x == 0:
            out[r] = math.sqrt(total) if order == 2 else total


def gpu(out, v, edges, order):
    check(out, v, edges)
    _launch[over_segments(edges)](out, v, edges, order)
