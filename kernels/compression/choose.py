"""Choose: decode each bit to one of the two values of its segment.

    out_i <- high[r] if bit i is set, else low[r]        for the i of segment r

packed holds the bits in bytes, the lowest first; low and high (segments,), out (d,).
Price: 2 operations per number; it is written once.
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.compression.segments import over_segments, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("out (d), packed (>= -(-d // 8)), low (r), high (r), edges (r + 1)")


def price(out, packed, low, high, edges):
    return 2 * len(out), len(out) + 2 * len(low) + packed.nbytes / out.itemsize


def reference(out, packed, low, high, edges):
    bits = np.unpackbits(packed, count=len(out), bitorder="little")
    for r, segment in enumerate(pieces(edges)):
        out[segment] = np.where(bits[segment], high[r], low[r])


@formula
def element(byte, i, low, high):
    return high if byte >> (i & 7) & 1 else low


@exact
def cpu(out, packed, low, high, edges):
    check(out, packed, low, high, edges)
    for r in range(low.size):
        below, above, start = low[r], high[r], edges[r]
        segment = out[start : edges[r + 1]]
        for i in range(segment.size):
            segment[i] = element(packed[start + i >> 3], start + i, below, above)


@cuda.jit
def _launch(out, packed, low, high, edges):
    for r in range(cuda.blockIdx.x, low.size, cuda.gridDim.x):
        for i in range(edges[r] + cuda.threadIdx.x, edges[r + 1], THREADS):
            out[i] = element(packed[i >> 3], i, low[r], high[r])


def gpu(out, packed, low, high, edges):
    check(out, packed, low, high, edges)
    _launch[over_segments(edges)](out, packed, low, high, edges)
