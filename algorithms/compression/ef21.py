"""EF21 sends the largest elements of the difference between a gradient and the other ranks' copy of it.

    u <- g - b        S <- the k largest of |u|        send (S, u[S])        b <- b + u on S        g <- mean of all b

Every rank keeps b, the sum of what it has sent, which is what the other ranks believe its gradient to be, and the mean
of all b. Top-k with error feedback carries an error as large as this rank's own gradient, even at the common optimum,
so it never settles at a constant rate. In EF21, messages shrink as the gradient changes less. With exact gradients, b
approaches g and training approaches the optimum, however different the ranks' data are. With mini-batches, b mixes the
gradients of many old batches, with all their noise.

Price: messages as in top-k, 2 k words to each of N - 1 others; two more vectors, b and the mean of all b.
Staleness: an element of b is as old as the last step in which its change was among the largest.
Source: Richtarik, Sokolov & Fatkhullin, NeurIPS 2021, arXiv:2106.05203, here with b = 0 before the first step.
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression, inside_the_codec
from algorithms.compression import top_k


class Settings(Knobs):
    density: float = knob(0.01, "fraction of the difference's elements that are sent", gt=0, le=1)


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.sparse = top_k.Codec(s, tensors, rank, size, seed)
        self.own, self.common = None, None  # b, and the mean of all b

    def mean(self, comm, v):
        if self.own is None:
            self.own, self.common = (kernels.keep(kernels.zeros_like(v)) for _ in range(2))
        kernels.residual(v, self.own)
        message = self.sparse.encode(v)
        self.sparse.add(message, self.own)
        v[:] = 0
        for each in comm.all_gather(message):
            self.sparse.add(each, v)
        kernels.scale(v, 1 / comm.size)
        kernels.add(self.common, v)
        v[:] = self.common
        return self.own


COMPRESSION = Compression(Codec, Settings, combine="codec", pushable=False, error_feedback=inside_the_codec)
