"""Random-k sends the same random places of every worker's gradient, so that a ring can sum them and no index travels.

    S <- k = density d places, drawn alike on all ranks        g <- (d/k) mean over the ranks of g[S], 0 elsewhere

Times d/k it is the gradient in expectation, and noisier. With error feedback nothing is lost, and there is no factor:
a place's gradients come all together when its turn comes.

Price: an all-reduce of k elements, 2 (N-1) k words in all; drawing, k elements.
Staleness: with error feedback a number waits d/k steps in the mean.
Source: Stich, Cordonnier & Jaggi, NeurIPS 2018; Vogels, Karimireddy & Jaggi, NeurIPS 2019 (shared seed).
"""

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression


class Settings(Knobs):
    density: float = knob(0.01, "share of the gradient's numbers that is sent", gt=0, le=1)
    error_feedback: bool = knob(True, "add what was not sent to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.density, self.feedback = s.density, s.error_feedback
        self.draw = np.random.default_rng([seed, 0x4B])  # the same on all ranks; 0x4B: nobody else's stream

    def places(self, v):
        k = max(1, round(self.density * len(v)))
        return kernels.beside(np.sort(self.draw.choice(len(v), k, replace=False, shuffle=False)).astype(np.int32), v)

    def mean(self, comm, v):
        index = self.places(v)
        values, kept = kernels.empty(len(index), v), kernels.zeros_like(v)
        kernels.gather(values, v, index)
        kernels.scatter_add(kept, index, values)
        comm.all_reduce(values, op="mean")
        if not self.feedback:
            kernels.scale(values, len(v) / len(index))
        v[:] = 0
        kernels.scatter_add(v, index, values)
        return kept


COMPRESSION = Compression(Codec, Settings, combine="codec", pushable=False)
