"""Norms: how large each run of a vector is.

    out[r] <- max |v_i|  (order 0),  sum |v_i|  (order 1),  sqrt(sum v_i^2)  (order 2)        over the i of run r

v (d,), out (runs,), edges (runs + 1,). An empty run has norm 0, one with a NaN has norm NaN.
Price: 2 FLOPs per number, and it is read once. On a CPU sums are float64; on a GPU a run is one block's.
"""

import math

import numpy as np

from kernels.compiled import exact
from kernels.compression.runs import block_largest, block_sum, over_runs, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS


def price(out, v, edges, order):
    return 2 * len(v), len(v) + len(out)


def reference(out, v, edges, order):
    kind = {0: np.inf, 1: 1, 2: 2}[order]
    for r, run in enumerate(pieces(edges)):
        out[r] = np.linalg.norm(v[run].astype(np.float64), kind) if len(v[run]) else 0


@exact
def cpu(out, v, edges, order):
    for r in range(out.size):
        run = v[edges[r] : edges[r + 1]]
        total = 0.0
        if order == 0:
            for x in run:
                size = abs(x)
                if size > total or size != size:  # nothing is above a NaN
                    total = float(size)
        elif order == 1:
            for x in run:
                total += abs(x)
        else:
            for x in run:
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
    _launch[over_runs(edges)](out, v, edges, order)
