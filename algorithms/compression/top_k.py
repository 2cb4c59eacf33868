"""Top-k sends the largest elements of a gradient and accumulates the others until they have grown.

    v <- g + e        S <- the k largest of |v|        send (S, v[S])        e <- decay v off S        k = density * d

Their indices differ between workers, so a ring cannot sum them: messages are all-gathered, and together may touch N k
elements. Without error feedback small elements are never sent. With a decay below 1 they are forgotten if they wait for
long. Applied to DiLoCo's displacements, with decay 0.95 and an outer step without momentum, it is SparseLoCo.

Price: 2 k words to each of N - 1 others; the dense ring moves 2 d (N-1)/N, so it is worth it for density < 1/N.
Staleness: a small element waits until it is among the largest.
Source: Aji & Heafield, EMNLP 2017; Stich, Cordonnier & Jaggi, NeurIPS 2018 (error feedback, convergence);
Sarfi et al., arXiv:2508.15706 (SparseLoCo: decay).
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression


class Settings(Knobs):
    density: float = knob(0.01, "fraction of the gradient's elements that is sent", gt=0, le=1)
    error_feedback: bool = knob(True, "add the unsent part to the next gradient")
    error_decay: float = knob(
        1.0, "decay, share of the unsent part that is kept", when={"error_feedback": (True,)}, ge=0, le=1
    )


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.density = s.density

    def encode(self, v):
        k = max(1, round(self.density * len(v)))
        values, index = kernels.empty(k, v), kernels.empty(k, v, "int32")
        kernels.select(values, index, v, *kernels.kth_largest(v, k))
        return index, values

    def decode(self, message, out):
        out[:] = 0
        self.add(message, out)

    def add(self, message, total):
        kernels.scatter_add(total, *message)


COMPRESSION = Compression(Codec, Settings, decay=lambda s: s.error_decay)
