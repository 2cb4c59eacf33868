"""QSGD rounds every element stochastically to one of a few levels, so that the result is unbiased.

    l <- s |v| / norm, rounded up with a probability equal to its fraction        q <- norm sign(v) l / s

over each bucket of elements, which is sent with its norm: the 2-norm, as in the theory, or the largest element (max),
as in practice. E q = v, and E |q - v|^2 <= min(d/s^2, sqrt(d)/s) |v|^2 for a bucket of d elements and the 2-norm. Error
feedback is not needed; with it the error grows from step to step where that bound is above 1. Codes cannot be summed:
they are all-gathered. Variable-length codes (Elias) would be shorter still; here all levels take the same bits.

Price: to each of N - 1 others 1 + ceil(log2(s + 1)) bits per element, and 4 bytes per bucket. Staleness: none.
Source: Alistarh, Grubic, Li, Tomioka & Vojnovic, NIPS 2017.
"""

from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.bit_packing import pack
from algorithms.parts.segments import Segments


class Settings(Knobs):
    levels: int = knob(
        7, "s, quantisation levels above zero; 1, 3, 7, ... (2^k - 1) leave no code unused", ge=1, le=127
    )
    bucket: int = knob(512, "elements that share one norm", ge=1, le=100_000_000)
    norm: Literal["2", "max"] = knob(
        "max", "norm that a bucket's levels divide: 2 (its 2-norm) or max (its largest element)"
    )
    error_feedback: bool = knob(
        False, "add the rounding error to the next gradient; with coarse rounding it grows without bound"
    )


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.levels, self.order = s.levels, {"2": 2, "max": 0}[s.norm]
        self.width = (2 * s.levels).bit_length()  # codes are 0 to 2 s
        d = tensors[-1][0].stop
        self.buckets = Segments([*[s.bucket] * (d // s.bucket), *[d % s.bucket] * (d % s.bucket > 0)])
        self.keys = np.random.default_rng([seed, rank, 0x51])  # a key per step for the random rounding

    def encode(self, v):
        edges = self.buckets.edges(slice(0, len(v)), v)
        norms, codes = kernels.empty(len(edges) - 1, v), kernels.empty(len(v), v, "uint8")
        kernels.norms(norms, v, edges, self.order)
        kernels.stochastic_quantize(codes, v, norms, edges, self.levels, int(self.keys.integers(2**63)))
        return pack(codes, self.width), norms

    def decode(self, message, out):
        bits, norms = message
        edges = self.buckets.edges(slice(0, len(out)), out)
        kernels.stochastic_dequantize(out, bits, norms, edges, self.levels, self.width)

    def add(self, message, total):
        part = kernels.empty_like(total)
        self.decode(message, part)
        kernels.add(total, part)


COMPRESSION = Compression(Codec, Settings)
