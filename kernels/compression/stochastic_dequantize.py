"""Stochastic dequantisation (QSGD): turn levels back into numbers.

    out_i <- scale[r] (code_i - s) / s        r: the segment of i

packed, the codes in `width` bits each as `pack` leaves them; scales (segments,), out (d,). With s the number of ranks,
a sum of that many codes of one level (-1, 0, 1) becomes their mean. A scale of NaN makes its segment NaN.
Price: 6 operations per number; its code is read, it is written once.
"""

import numpy as np

from kernels.compiled import exact
from kernels.compression.pack import field_cpu, field_gpu
from kernels.compression.segments import over_segments, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("out (d), packed (>= -(-d * width // 8)), scales (r), edges (r + 1)", "width")


def price(out, packed, scales, edges, levels, width):
    return 6 * len(out), len(out) + len(scales) + packed.nbytes / out.itemsize


def reference(out, packed, scales, edges, levels, width):
    bits = np.unpackbits(packed, count=len(out) * width, bitorder="little").reshape(-1, width)
    codes = bits @ (1 << np.arange(width))
    for r, segment in enumerate(pieces(edges)):
        with np.errstate(invalid="ignore"):
            out[segment] = (codes[segment] - levels).astype(out.dtype) * (scales[r] / out.dtype.type(levels))


@exact
def cpu(out, packed, scales, edges, levels, width):
    check(out, packed, scales, edges, width)
    number = out.dtype.type
    for r in range(scales.size):
        unit = scales[r] / number(levels)
        for i in range(edges[r], edges[r + 1]):
            out[i] = number(field_cpu(packed, i, width) - levels) * unit


@cuda.jit
def _launch(out, packed, scales, edges, levels, width):
    number = out.dtype.type
    for r in range(cuda.blockIdx.x, scales.size, cuda.gridDim.x):
        unit = scales[r] / number(levels)
        for i in range(edges[r] + cuda.threadIdx.x, edges[r + 1], THREADS):
            out[i] = number(field_gpu(packed, i, width) - levels) * unit


def gpu(out, packed, scales, edges, levels, width):
    check(out, packed, scales, edges, width)
    _launch[over_segments(edges)](out, packed, scales, edges, levels, width)
