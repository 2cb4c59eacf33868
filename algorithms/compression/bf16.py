"""bf16 rounds every element to the first 16 of its 32 bits: half the bytes, the same range, two decimal digits.

    q <- the nearest number with 8 significant bits, ties to even

Sums are formed in full precision: every part of the gradient is sent to its owner rank, which adds in float32 and
rounds once more (`parts/reduce_scatter_codec.py`). A ring of bf16 elements would round at each of its N - 1 hops for
the same bytes, an all-gather would round once and cost N/2 times as many.

Price: 2 (N-1)/N d elements of 2 bytes per rank, half of float32's. Staleness: none.
Source: Kalamkar et al., arXiv:1905.12322.
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.reduce_scatter_codec import ReduceScatterCodec


class Settings(Knobs):
    error_feedback: bool = knob(False, "add the rounding error to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.by_part = ReduceScatterCodec(self.encode, self.decode, s.error_feedback)

    def mean(self, comm, v):
        return self.by_part.mean(comm, v)

    def encode(self, v, part=None):
        codes = kernels.empty(len(v), v, "uint16")
        kernels.to_bf16(codes, v)
        return codes

    def decode(self, codes, out, part=None):
        kernels.from_bf16(out, codes)


COMPRESSION = Compression(Codec, Settings, combine="codec")
