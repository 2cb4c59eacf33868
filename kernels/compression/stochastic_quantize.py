"""Stochastic quantisation (QSGD): round to s levels, unbiased in expectation.

    level_i = s |v_i| / scale[r], rounded up with probability equal to its fraction        r: the segment of i
    codes_i <- s + sign(v_i) level_i                 0 to 2 s; s encodes 0

v (d,), codes (d,) integers, scales (segments,). Numbers beyond the scale are clipped. The random number of i is a hash
of `key` (below 2^63) and i: counter-based, so the same on every machine and implementation.

Price: 12 operations per number; it is read once, its code written once.
Source: Alistarh et al., NIPS 2017 (levels); Steele, Lea & Flood, OOPSLA 2014 (splitmix64, the hash).
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.compression.segments import over_segments, pieces
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("codes (d), v (d), scales (r), edges (r + 1)")

STEP, FIRST, SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
A, B, C, TOP = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(40)


def price(codes, v, scales, edges, levels, key):
    return 12 * len(v), codes.nbytes / codes.itemsize + (v.nbytes + scales.nbytes) / codes.itemsize


def _dice(key, i):
    """Return 24 pseudo-random bits as a whole number."""
    z = key + i * STEP
    z = (z ^ (z >> A)) * FIRST
    z = (z ^ (z >> B)) * SECOND
    return (z ^ (z >> C)) >> TOP


dice = formula(_dice)


def reference(codes, v, scales, edges, levels, key):
    number = v.dtype.type
    with np.errstate(over="ignore"):
        throws = _dice(np.uint64(key), np.arange(len(v), dtype=np.uint64))
    chances = throws.astype(v.dtype) * number(2**-24)
    for r, segment in enumerate(pieces(edges)):
        with np.errstate(invalid="ignore"):
            level = np.abs(v[segment]) / scales[r] * number(levels) if scales[r] > 0 else np.zeros_like(v[segment])
        whole = np.where(level < levels, level + chances[segment], number(levels)).astype(np.int64)
        codes[segment] = np.where(v[segment] < 0, levels - whole, levels + whole)


@formula
def element(x, scale, levels, chance, zero):
    level = abs(x) / scale * levels if scale > zero else zero
    whole = int(level + chance if level < levels else levels)  # the second beyond the scale, or for a NaN
    return -whole if x < zero else whole


@exact
def cpu(codes, v, scales, edges, levels, key):
    check(codes, v, scales, edges)
    number, key = v.dtype.type, np.uint64(key)
    s, zero, unit = number(levels), number(0), number(2**-24)
    for r in range(scales.size):
        scale, start = scales[r], edges[r]
        segment, part = v[start : edges[r + 1]], codes[start : edges[r + 1]]
        for i in range(segment.size):
            chance = number(dice(key, np.uint64(start + i))) * unit
            part[i] = levels + element(segment[i], scale, s, chance, zero)


@cuda.jit
def _launch(codes, v, scales, edges, levels, key):
    number, key = v.dtype.type, np.uint64(key)
    s, zero, unit = number(levels), number(0), number(2**-24)
    for r in range(cuda.blockIdx.x, scales.size, cuda.gridDim.x):
        for i in range(edges[r] + cuda.threadIdx.x, edges[r + 1], THREADS):
            codes[i] = levels + element(v[i], scales[r], s, number(dice(key, np.uint64(i))) * unit, zero)


def gpu(codes, v, scales, edges, levels, key):
    check(codes, v, scales, edges)
    _launch[over_segments(edges)](codes, v, scales, edges, levels, key)
