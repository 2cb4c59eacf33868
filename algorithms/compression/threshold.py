"""Threshold sends the sign of every element that has accumulated more than tau, packed with its index into one word.

    r <- r + g        send +i where r_i > tau, -i where r_i < -tau        r_i <- r_i - tau, r_i + tau where it was sent

What arrives is +-tau for any r: an element far beyond tau needs several steps, one near 0 accumulates for a while. Each
coordinate is sent at a rate proportional to its gradients. tau has the unit of the gradient and must be tuned per
model.

Price: a word of 32 bits per element sent, to each of N - 1 others; tau decides how many. A buffer of d such words.
Staleness: an element g waits about tau/|g| steps.
Source: Strom, Interspeech 2015.
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression


class Settings(Knobs):
    threshold: float = knob(0.05, "tau, amount an element must accumulate before it is sent; also the value sent", gt=0)
    error_feedback: bool = knob(True, "accumulate over steps what was not sent; if off, it is lost")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.tau, self.words = s.threshold, None

    def encode(self, v):
        if self.words is None:
            self.words = kernels.keep(kernels.empty(len(v), v, "int32"))  # room for all of them
        count = kernels.threshold(self.words, v, self.tau)
        return None if count < 0 else kernels.copy(self.words[:count])

    def decode(self, message, out):
        out[:] = 0
        self.add(message, out)

    def add(self, message, total):
        kernels.scatter_signs(total, message, self.tau)


COMPRESSION = Compression(Codec, Settings)
