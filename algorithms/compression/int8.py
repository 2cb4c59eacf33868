"""int8 stores one exponent per block of elements, and seven bits and a sign per element.

    e <- the least with max |v| <= 127 * 2^e        q <- v / 2^e, rounded to a whole number        over each block

Such codes cannot be summed as they are: exponents differ, and the sum of N 7-bit numbers needs log2 N more bits. One
shared exponent with log2 N bits of headroom costs the precision of every element (at 128 ranks nothing would be left),
and rounding at every hop of a ring costs N - 1 roundings. Here each part is sent to its owner rank, which adds in full
precision and rounds once more (`parts/reduce_scatter_codec.py`).

Price: 2 (N-1)/N d (1 + 1/block) bytes per rank, a quarter of float32's. Staleness: none.
Source: Sridharan et al., arXiv:1801.08030 (MLSL's dynamic fixed point with error feedback).
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.reduce_scatter_codec import ReduceScatterCodec


class Settings(Knobs):
    block: int = knob(256, "gradient elements that share one exponent", ge=1, le=1_000_000)
    error_feedback: bool = knob(True, "add the rounding error to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.block = s.block
        self.by_part = ReduceScatterCodec(self.encode, self.decode, s.error_feedback)

    def mean(self, comm, v):
        return self.by_part.mean(comm, v)

    def encode(self, v, part=None):
        codes, exponents = kernels.empty(len(v), v, "int8"), kernels.empty(-(-len(v) // self.block), v, "int8")
        kernels.to_fixed(codes, exponents, v, self.block)
        return codes, exponents

    def decode(self, message, out, part=None):
        kernels.from_fixed(out, *message, self.block)


COMPRESSION = Compression(Codec, Settings, combine="codec")
