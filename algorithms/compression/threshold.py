"""Threshold sends a plus or a minus for every number that has gathered more than tau, in one word with its place.

    r <- r + g        send +i where r_i > tau, -i where r_i < -tau        r_i <- r_i - tau, r_i + tau where it was sent

What arrives is +-tau, whatever r was: a number far beyond tau needs several steps, one near 0 gathers for a while. The
rate of every coordinate follows its gradients. tau is in the units of the gradient and must be found for each model.

Price: a word of 32 bits per number sent, to each of N - 1 others; how many there are, tau decides.
Staleness: a number g waits about tau/|g| steps.
Source: Strom, Interspeech 2015.
"""

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression


class Settings(Knobs):
    threshold: float = knob(0.05, "tau: what a number must have gathered to be sent, and what is then sent", gt=0)
    error_feedback: bool = knob(True, "keep what has gathered; off: what a step does not send is lost")


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.tau, self.words = s.threshold, None

    def encode(self, v):
        if self.words is None:
            self.words = kernels.empty(len(v), v, "int32")  # room for all of them
        count = kernels.threshold(self.words, v, self.tau)
        return None if count < 0 else kernels.copy(self.words[:count])

    def decode(self, message, out):
        out[:] = 0
        self.add(message, out)

    def add(self, message, total):
        kernels.scatter_signs(total, message, self.tau)


COMPRESSION = Compression(Codec, Settings)
