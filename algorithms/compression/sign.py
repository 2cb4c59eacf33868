"""signSGD sends one bit per element, the direction to move in, and the majority of workers decides.

    m <- beta m + (1 - beta) g        bit <- [m >= 0]        g <- the sign that most workers have

With beta > 0 it is SIGNUM. One bit up and one bit down: every rank counts the votes on its own part of the gradient
and sends the result to all (`parts/reduce_scatter_codec.py`). The owner's own vote breaks ties,
and a 0 votes up and down in turn, since a fixed sign would bias all zeros. Every element moves by the whole learning
rate, which must therefore be as small as a step of a parameter should be: a hundredth of SGD's, or less.

With error feedback it is a mean instead of a vote (EF-sign; beta is not used): signs are sent with their mean size, and
sender and owner keep what that leaves out:

    v <- g + e        q <- sign(v) mean |v|, over each tensor        e <- v - q

Price: 2 (N-1)/N d bits per rank, 1/32 of float32's; one more vector of memory, m. Staleness: none; with error feedback
what is left out is sent later.
Source: Bernstein et al., ICML 2018 and ICLR 2019 (vote); Karimireddy et al., ICML 2019 (error feedback).
"""

import math
from itertools import pairwise

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression
from algorithms.parts.bit_packing import pack
from algorithms.parts.reduce_scatter_codec import ReduceScatterCodec, exchange_parts
from algorithms.parts.segments import tensor_segments
from kernels.arrays import shares

LARGEST = 0.02  # learning rate, beyond which moves of all elements are too long for any of our models


class Settings(Knobs):
    beta: float = knob(0.9, "decay of the averaged gradient whose sign is sent; 0 is signSGD", ge=0, lt=1)
    error_feedback: bool = knob(False, "send mean magnitudes too, and add the remaining error to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.beta, self.m, self.step = s.beta, None, 0
        self.tensors = tensor_segments(tensors)
        self.by_part = ReduceScatterCodec(self.encode_sized, self.read_sized, True) if s.error_feedback else None

    def encode(self, v):
        return self.encode_sized(v, slice(0, len(v))) if self.by_part else ballot(v)

    def decode(self, message, out):
        if self.by_part:
            self.read_sized(message, out, slice(0, len(out)))
        else:
            read(message, out)

    def mean(self, comm, v):
        return self.by_part.mean(comm, v) if self.by_part else self.elect(comm, v)

    def elect(self, comm, g):
        """Update the momentum m, whose signs are this rank's votes, with g. Replace each element of g by the majority's
        vote, 1 or -1; return this rank's own votes in the same form.
        """
        if self.m is None:
            self.m = kernels.keep(kernels.zeros_like(g))
        kernels.ema(self.m, g, 1 - self.beta)
        self.step += 1
        parts, kept = shares(len(g), comm.size), kernels.empty_like(g)
        ballots = [ballot(self.m[part], self.step % 2) for part in parts]
        for votes, part in zip(ballots, parts, strict=True):
            read(votes, kept[part])

        def count(several):
            if any(votes is None for votes in several):
                return None
            box = kernels.empty((comm.size, len(several[0])), several[0])
            for voter, votes in enumerate(several):
                box[voter] = votes
            result = kernels.empty_like(several[0])
            kernels.majority_vote(result, box, comm.rank)
            return result

        for votes, part in zip(exchange_parts(comm, ballots, count), parts, strict=True):
            read(votes, g[part])
        return kept

    def encode_sized(self, x, part):
        edges = self.tensors.edges(part, x)
        sizes = kernels.empty(len(edges) - 1, x)
        kernels.norms(sizes, x, edges, 1)
        for run, (start, stop) in enumerate(pairwise(edges.tolist())):
            sizes[run] /= max(stop - start, 1)
        return pack(x >= 0, 1), sizes

    def read_sized(self, message, out, part):
        bits, sizes = message
        kernels.choose(out, bits, -sizes, sizes, self.tensors.edges(part, out))


def ballot(m, zero_is_above: bool = True):
    """Return a packed vote on every element, or None if an element is not finite."""
    return pack(m >= 0 if zero_is_above else m > 0, 1) if math.isfinite(float(m @ m)) else None


def read(votes, out):
    """Set each element of `out` to 1 or -1, as voted; to NaN if there are no `votes`."""
    if votes is None:
        out[:] = math.nan
        return
    one = kernels.empty(1, out)
    one[:] = 1
    kernels.choose(out, votes, -one, one, kernels.beside(np.array([0, len(out)]), out))


def unstable(e):
    rate = e.settings["learning_rate"]
    if not e.coding["error_feedback"] and rate > LARGEST:
        yield (
            "compression",
            f"with sign, every element moves by the whole learning rate in each step, so {rate:g} is likely too "
            f"large; use a hundredth of it, {rate / 100:g}, or less",
        )


COMPRESSION = Compression(Codec, Settings, combine="codec", unstable=unstable)
