"""Deep gradient compression sends the largest thousandth of accumulated gradients, and accumulates momentum with them.

Each worker clips its own gradient, and accumulates a velocity u and what it has not sent, v; for each weight matrix

    g <- g min(1, clipping / (sqrt N |g|))
    u <- m u + g        v <- v + u                           momentum correction: late, but with its momentum
    S <- the indices of the largest |v|, `density` of all          send (S, v[S])
    v[S] <- 0           u[S] <- 0                            factor masking: no stale momentum of what was sent

Biases, which are few, are sent whole. The density falls 1/4, 1/16, 1/64 ... to its value, so that the first steps,
in which the model changes most, lose least. The codec applies the momentum: use plain SGD steps in the algorithm.
The threshold of S is estimated from a sample of |v|, and corrected until it selects 0.8 to 1.3 times the wanted number.

At density 1 nothing is delayed: the whole gradient is sent, nothing is masked, and this is momentum SGD. Masking
everything would leave plain SGD.

Price: 2 words per element sent, to each of N - 1 others, so the traffic grows with N; 2 more vectors of memory.
Staleness: an element waits until it is among the largest.
Source: Lin, Han, Mao, Wang & Dally, ICLR 2018; selection as in the authors' code.
"""

import math

import kernels
from algorithms.algorithm import Knobs, knob
from algorithms.codec import Compression, inside_the_codec

FEW, MANY, TRIES = 0.8, 1.3, 10  # shares of the wanted count; attempts


class Settings(Knobs):
    density: float = knob(0.001, "fraction of each matrix that is sent, after the first steps", gt=0, le=1)
    density_steps: int = knob(10, "steps at each of the first densities (1/4, 1/16, ...)", ge=0, le=1_000_000)
    momentum_correction: float = knob(
        0.5, "m, decay of the local velocity; the paper uses 0.9, with smaller steps", ge=0, lt=1
    )
    nesterov_correction: bool = knob(False, "accumulate Nesterov momentum instead of plain momentum")
    factor_masking: bool = knob(True, "reset the velocity of elements that were sent")
    clipping: float | None = knob(
        None, "maximum norm of the summed gradient; no limit by default", none="no limit", gt=0
    )
    sampling: float = knob(0.01, "fraction of the elements that the threshold is estimated from", gt=0, le=1)


class Codec:
    def __init__(self, s, tensors, rank, size, seed):
        matrices = [where for where, shape in tensors if len(shape) > 1]
        self.s, self.most = s, s.clipping and s.clipping / math.sqrt(size)
        self.sparse = matrices or [where for where, _ in tensors]
        self.whole = [where for where, _ in tensors if where not in self.sparse]
        self.u = self.v = None
        self.steps = 0

    def encode(self, g):
        if self.u is None:
            self.u, self.v = kernels.keep(kernels.zeros_like(g)), kernels.keep(kernels.zeros_like(g))
        if self.most:
            g = kernels.copy(g)
            kernels.clip(g, self.most)
        kernels.correct(self.v, self.u, g, self.s.momentum_correction, self.s.nesterov_correction)
        density = self.density()
        self.steps += 1
        message = kernels.copy(self.v) if density == 1 else self.largest(density)
        if density == 1:
            self.v[:] = 0
        return message

    def density(self):
        stage = self.steps // self.s.density_steps if self.s.density_steps else math.inf
        return max(self.s.density, 4.0 ** -(1 + stage))

    def largest(self, density):
        """Remove from v what is to be sent, and return it: (index, values, elements of the tensors sent whole)."""
        cuts = [
            self.find_threshold(self.v[part], max(1, round(density * (part.stop - part.start)))) for part in self.sparse
        ]
        count = sum(count for *_, count in cuts)
        values, index = kernels.empty(count, self.v), kernels.empty(count, self.v, "int32")
        rest = kernels.empty(sum(part.stop - part.start for part in self.whole), self.v)
        done = 0
        for part, (cut, ties, count) in zip(self.sparse, cuts, strict=True):
            mine = slice(done, done + count)
            kernels.select(values[mine], index[mine], self.v[part], cut, ties)
            index[mine] += part.start
            done += count
        for part, mine in self._whole():
            rest[mine] = self.v[part]
            self.v[part] = 0
        kernels.forget(self.v, index)
        if self.s.factor_masking:
            kernels.forget(self.u, index)
        return index, values, rest

    def find_threshold(self, v, k):
        """Return (cut, ties, count): `count` elements of v, about k, are above the cut or among the first `ties` that
        equal it.
        """
        stride = min(
            max(1, round(1 / self.s.sampling)), max(1, k // 2)
        )  # so that at least two of the sample are above the cut
        sample = kernels.copy(v[::stride])
        cut, _ = kernels.kth_largest(sample, max(1, round(len(sample) * k / len(v))))
        nothing = v[:0], kernels.empty(0, v, "int32")
        for _ in range(TRIES):
            count = kernels.select(*nothing, v, cut, len(v))
            if count > MANY * k:  # the largest k are among these
                found = kernels.empty(count, v)
                kernels.select(found, kernels.empty(count, v, "int32"), v, cut, len(v))
                return *kernels.kth_largest(found, k), k
            if count >= FEW * k:
                return cut, len(v), count
            cut *= FEW
        return *kernels.kth_largest(v, k), k

    def _whole(self):
        """Yield (slice of the gradient, slice of the message) of each tensor that is sent whole."""
        done = 0
        for part in self.whole:
            yield part, slice(done, done + part.stop - part.start)
            done += part.stop - part.start

    def decode(self, message, out):
        out[:] = 0
        self.add(message, out)

    def add(self, message, total):
        if not isinstance(message, tuple):  # all of v
            kernels.add(total, message)
            return
        index, values, rest = message
        kernels.scatter_add(total, index, values)
        for part, mine in self._whole():
            kernels.add(total[part], rest[mine])


COMPRESSION = Compression(Codec, Settings, error_feedback=inside_the_codec)
