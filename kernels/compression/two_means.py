"""Two means: the reconstruction values of a segment whose elements are sent as signs only (1-bit SGD).

    low[r] <- mean of the v_i < 0        high[r] <- mean of the v_i >= 0        over the i of segment r

They minimise the squared distance to v, given its signs. The mean of no numbers is 0. A NaN counts as below 0, so that
low is NaN.
Price: 4 FLOPs per number, and it is read once. On a CPU sums are float64; on a GPU one block handles a segment.
Source: Seide, Fu, Droppo, Li & Yu, Interspeech 2014.
"""

import numpy as np

from kernels.compiled import exact
from kernels.compression.segments import block_sum, over_segments, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("low (r), high (r), v (d), edges (r + 1)")


def price(low, high, v, edges):
    return 4 * len(v), len(v) + 2 * len(low)


def reference(low, high, v, edges):
    for r, segment in enumerate(pieces(edges)):
        x = v[segment].astype(np.float64)
        below, above = x[~(x >= 0)], x[x >= 0]
        low[r] = below.mean() if below.size else 0
        high[r] = above.mean() if above.size else 0


@exact
def cpu(low, high, v, edges):
    check(low, high, v, edges)
    for r in range(low.size):
        segment = v[edges[r] : edges[r + 1]]
        below = above = 0.0
        count = 0
        for x in segment:
            up = x >= 0
            above += x if up else 0.0
            below += 0.0 if up else x
            count += up
        low[r] = below / max(segment.size - count, 1)
        high[r] = above / max(count, 1)


@cuda.jit
def _launch(low, high, v, edges):
    scratch = cuda.shared.array(THREADS, v.dtype)
    zero, one = v.dtype.type(0), v.dtype.type(1)
    for r in range(cuda.blockIdx.x, low.size, cuda.gridDim.x):
        below, above, ups, downs = zero, zero, zero, zero
        for i in range(edges[r] + cuda.threadIdx.x, edges[r + 1], THREADS):
            if v[i] >= zero:
                above += v[i]
                ups += one
            else:
                below += v[i]
                downs += one
        below, above = block_sum(scratch, below), block_sum(scratch, above)
        ups, downs = block_sum(scratch, ups), block_sum(scratch, downs)
        if cuda.threadIdx.x == 0:
            low[r] = below / downs if downs else zero
            high[r] = above / ups if ups else zero


def gpu(low, high, v, edges):
    check(low, high, v, edges)
    _launch[over_segments(edges)](low, high, v, edges)
