"""PowerSGD sends two thin matrices whose product approximates the gradient and which an all-reduce can sum.

    M <- G + E        P <- mean over ranks of M Q        P <- its columns orthonormalised
                      Q <- mean over ranks of M^T P      G <- P Q^T        E <- M - G

for every matrix (rows x columns; filters are rows), with the Q (columns x r) of the last step: one power iteration per
step, which tracks the dominant directions of a slowly changing gradient. P is linear in M given Q, and Q given P, so
their means are those of the mean gradient. Tensors that would not become smaller are sent as they are.

E is what the mean leaves out of this rank's M; the mean of P^T E over the ranks is 0.
Price: two all-reduces, together of r (rows + columns) elements per matrix; 6 r rows columns FLOPs; twice the latency.
Staleness: what r directions leave out is sent later.
Source: Vogels, Karimireddy & Jaggi, NeurIPS 2019.
"""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression

LEAST = 1e-5  # relative length of a column of P below which it counts as dependent on the others


class Settings(Knobs):
    directions: int = knob(2, "r, columns (the rank) of the two thin matrices that are sent", ge=1, le=1000)
    least_compression: float = knob(2.0, "minimum factor by which a matrix must shrink to be compressed", ge=1, le=1e6)
    warm_start: bool = knob(True, "start the power iteration from the previous step's factors")
    error_feedback: bool = knob(True, "add the approximation error to the next gradient")


class Matrix(NamedTuple):
    """A tensor that is sent as P and Q: its slice of the gradient, its shape, and its slices of the vectors that hold
    all P and all Q.
    """

    place: slice
    rows: int
    columns: int
    p: slice
    q: slice


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        self.r, self.warm = s.directions, s.warm_start
        self.draw = np.random.default_rng([seed, 0x90])  # the same on all ranks
        self.matrices, self.others = [], []
        p = q = 0  # elements so far
        for place, shape in tensors:
            rows, columns = shape[0], math.prod(shape[1:])
            if len(shape) > 1 and rows * columns >= s.least_compression * self.r * (rows + columns):
                ends = p + rows * self.r, q + columns * self.r
                self.matrices.append(Matrix(place, rows, columns, slice(p, ends[0]), slice(q, ends[1])))
                p, q = ends
            else:
                self.others.append((place, slice(p, p := p + place.stop - place.start)))
        self.lengths, self.q = (p, q), None

    def mean(self, comm, v):
        kept = kernels.copy(v)
        self.decode(self.factors(v, partial(comm.all_reduce, op="mean")), v)
        for matrix in self.matrices:
            kept[matrix.place] = v[matrix.place]
        return kept

    def encode(self, v):
        return self.factors(v, lambda x: x)

    def decode(self, message, out):
        p, q = message
        for m in self.matrices:
            columns, rows = self.columns(p, m.p), self.columns(q, m.q)
            kernels.matmul(out[m.place].reshape(m.rows, m.columns), columns, rows.T)
        for place, where in self.others:
            out[place] = p[where]

    def factors(self, v, mean):
        """Return a vector of all P and of the tensors sent as they are, and a vector of all Q, which the next step
        starts from.

        mean(vector) averages a vector over the ranks, in place.
        """
        p, q = (kernels.empty(length, v) for length in self.lengths)
        before = self.before(q)
        for m in self.matrices:
            kernels.matmul(self.columns(p, m.p), matrix(v, m), self.columns(before, m.q))
        for place, where in self.others:
            p[where] = v[place]
        mean(p)
        for m in self.matrices:
            kernels.gram_schmidt(self.columns(p, m.p), LEAST)
            kernels.matmul(self.columns(q, m.q), matrix(v, m).T, self.columns(p, m.p))
        mean(q)
        first, self.q = self.q is None, kernels.copy(q)
        if first:
            kernels.keep(self.q)
        for m in self.matrices:  # a direction that has become 0 would stay 0
            now = self.columns(self.q, m.q)
            now += self.columns(before, m.q) * ~now.any(0)
        return p, q

    def before(self, like):
        """Return the Q that this step starts from: the Q of the last step, or random numbers."""
        if self.warm and self.q is not None:
            return self.q
        q = kernels.empty_like(like)
        q[:] = kernels.beside(self.draw.standard_normal(len(like)), like)
        return q

    def columns(self, flat, where):
        return flat[where].reshape(-1, self.r)


def matrix(v, m):
    return v[m.place].reshape(m.rows, m.columns)


COMPRESSION = Compression(Codec, Settings, combine="codec")
