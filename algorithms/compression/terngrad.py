"""TernGrad rounds every element stochastically to -1, 0 or 1 times one scale, so that the result is unbiased.

    s <- max over ranks of min(max |g|, clip sigma)      b <- 1 with probability min(1, |g| / s)      q <- s sign(g) b

over each tensor; sigma^2 is the mean of g^2. E q = g, except for the few clipped elements, and without clipping
E |q - g|^2 = s |g|_1 - |g|_2^2. Ranks first agree on the largest scale, so that the sum of N codes is an integer from
-N to N: each rank sums its own part, and sends the sum to all without loss (`parts/reduce_scatter_codec.py`).

Price: per rank (N-1)/N d elements of 2 bits, as many of log2(2 N + 1) bits, and N - 1 scales per tensor.
Staleness: none.
Source: Wen, Xu, Yan, Wu, Wang, Chen & Li, NIPS 2017.
"""

from functools import reduce

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.bit_packing import pack
from algorithms.parts.reduce_scatter_codec import exchange_parts
from algorithms.parts.segments import tensor_segments
from kernels.arrays import shares


class Settings(Knobs):
    clip: float = knob(
        2.5, "standard deviations at which elements are clipped before rounding; 0 means never", ge=0, le=1000
    )
    error_feedback: bool = knob(False, "add the error of rounding and clipping to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.clip, self.tensors = s.clip, tensor_segments(tensors)
        self.roots = np.sqrt([place.stop - place.start for place, _ in tensors])
        self.keys = np.random.default_rng([seed, rank, 0x7E])  # a key per step for the random rounding

    def encode(self, v):
        scales = self.scales(v)
        return pack(self.ternary(v, scales), width(1)), scales

    def decode(self, message, out):
        bits, scales = message
        self.read(bits, scales, 1, out, slice(0, len(out)))

    def mean(self, comm, v):
        parts = shares(len(v), comm.size)
        mine, kept = parts[comm.rank], kernels.empty_like(v)
        scales = reduce(lambda a, b: a.clip(min=b), comm.all_gather(self.scales(v)))
        codes = self.ternary(v, scales)
        messages = [pack(codes[part], width(1)) for part in parts]
        for message, part in zip(messages, parts, strict=True):
            self.read(message, scales, 1, kept[part], part)

        def merge(several):
            total, ternary, ones = kernels.zeros_like(v[mine]), kernels.empty_like(v[mine]), kernels.empty_like(scales)
            ones[:] = 1
            for message in several:
                self.read(message, ones, 1, ternary, mine)
                kernels.add(total, ternary)
            return pack(total + comm.size, width(comm.size))  # from 0 to 2 N

        for message, part in zip(exchange_parts(comm, messages, merge), parts, strict=True):
            self.read(message, scales, comm.size, v[part], part)
        return kept

    def scales(self, v):
        """Return each tensor's scale: its largest magnitude after clipping."""
        edges = self.tensors.edges(slice(0, len(v)), v)
        largest, lengths = kernels.empty(len(edges) - 1, v), kernels.empty(len(edges) - 1, v)
        kernels.norms(largest, v, edges, 0)
        if self.clip:
            kernels.norms(lengths, v, edges, 2)
            largest[:] = largest.clip(max=self.clip * lengths / kernels.beside(self.roots, v))
        return largest

    def ternary(self, v, scales):
        """Return a code for every element, rounded stochastically: 0, 1 or 2, which decode to -1, 0 and 1."""
        codes, edges = kernels.empty(len(v), v, "uint8"), self.tensors.edges(slice(0, len(v)), v)
        kernels.stochastic_quantize(codes, v, scales, edges, 1, int(self.keys.integers(2**63)))
        return codes

    def read(self, bits, scales, many, out, part):
        """Decode `bits`, the packed sums of `many` codes: write each scale times the mean code to `out`."""
        runs, edges = self.tensors.within(part, out)
        kernels.stochastic_dequantize(out, bits, scales[runs], edges, many, width(many))


def width(many: int) -> int:
    """Return the number of bits that hold any integer from 0 to twice `many`."""
    return (2 * many).bit_length()


COMPRESSION = Compression(Codec, Settings, combine="codec")
