"""Random-k sends the same random elements of every worker's gradient, so a ring can sum them without sending indices.

    S <- k = density d indices, the same on all ranks        g <- (d/k) mean over the ranks of g[S], 0 elsewhere

With the factor d/k it is unbiased, and noisier. With error feedback nothing is lost, and there is no factor: an
element's accumulated gradients are sent together when it is drawn.

Price: an all-reduce of k elements, 2 (N-1) k words in total; drawing k indices.
Staleness: with error feedback an element waits d/k steps on average.
Source: Stich, Cordonnier & Jaggi, NeurIPS 2018; Vogels, Karimireddy & Jaggi, NeurIPS 2019 (shared seed).
"""

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression


class Settings(Knobs):
    density: float = knob(0.01, "fraction of the gradient's elements that is sent", gt=0, le=1)
    error_feedback: bool = knob(True, "add the unsent part to the next gradient")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.density, self.feedback = s.density, s.error_feedback
        self.draw = np.random.default_rng([seed, 0x4B])  # the same on all ranks; 0x4B: a stream of its own

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
