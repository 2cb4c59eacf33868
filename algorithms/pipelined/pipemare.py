"""PipeMare has neither bubble nor stash, and compensates for stale weights with arithmetic.

Every slot each stage goes forward with one mini-batch and back with an older one, on the only copy of the weights:
t_s = 2(S-1-s)+1 updates lie between the two passes. Three techniques compensate:

    T1  small steps where it is stale, at first      lr_s(k) = lr / t_s^p,  p = 1 - min(k/K, 1),  k: update
    T2  back on nearly the weights that F read       u = w - t_s d,  d <- y d + (1 - y)(w_new - w_old),  y = D^(1/t_s)
    T3  the first epochs without any delay           one mini-batch at a time

    w <- w - lr_s(k) g_s        g_s: activations of version b-t_s, transposed weights u

    stage 0   F0 F1 F2 F3 F4 F5 B0 F6 B1
    stage 1   .. F0 F1 F2 F3 B0 F4 B1 F5
    stage 2   .. .. F0 F1 B0 F2 B1 F3 B2        one micro-batch an update; the paper's fine stages are a layer each

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step. One copy of the weights, one
more for T2, and the activations of t_s + 1 mini-batches. Staleness: t_s updates; T1 pays with slower steps at first,
and helps only where the rate is near what the delay allows, lr h < 2 sin(pi / (4 t + 2)) for a curvature h.
Source: Yang et al., MLSys 2021, arXiv:1910.05124.
"""

from collections.abc import Iterator
from functools import partial
from itertools import count

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stream_executor import StreamExecutor, stream


class Settings(StreamSettings):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    rescale: int = knob(
        100, "T1: updates until every stage has the full learning rate; 0 means at once", ge=0, le=10_000_000
    )
    correct: bool = knob(True, "T2: correct the weights of the backward pass towards those of the forward pass")
    decay: float = knob(
        0.135,
        "D of T2, fraction of a weight change still in the running mean after one pipeline delay",
        when={"correct": (True,)},
        gt=0,
        lt=1,
    )
    warm_up: float = knob(0.0, "T3: initial epochs trained without delay", ge=0, le=1000, unit="epochs")


def schedule(rank: int, ranks: int, chunks: float) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` mini-batches."""
    return one_f_one_b(rank, ahead=2 * (ranks - 1 - rank) + 1, per_update=1, chunks=chunks)


def with_warm_up(rank, ranks, chunks, warm):
    """Yield the ops with T3: the first `warm` mini-batches go through one at a time."""
    for batch in range(warm):
        yield from (Op(kind, rank, batch) for kind in "FBU")
    yield from (op._replace(chunk=op.chunk + warm) for op in schedule(rank, ranks, chunks))


def worker(comm, task, s):
    warm = round(s.warm_up * task.per_epoch)
    plan = Stream.of(with_warm_up, comm.size, warm=warm)
    return StreamExecutor(comm, task, plan, s, partial(CorrectedWeights, warm)).run()


class CorrectedWeights:
    """Weight policy of a stage: the newest weights, with T1 and T2 after `warm` updates."""

    versions, stash = 1, False

    def __init__(self, warm, s, stage, w):
        self.delay, self.warm, self.s = 2 * (stage.count - 1 - stage.index) + 1, warm, s
        self.v, self.d = kernels.state_like(w), kernels.state_like(w)
        self.updates = count()

    def forward(self, weights, batch):
        return weights.newest

    def backward(self, weights, flight):
        version, w = weights.newest
        if self.s.correct and version >= self.warm:
            w = kernels.copy(w)
            kernels.sgd(w, self.d, self.delay)  # u <- w - t d
        return version, w

    def update(self, w, g):
        before = kernels.copy(w)
        kernels.momentum(w, self.v, g, self.rate(next(self.updates) - self.warm), self.s.momentum)
        if self.s.correct:
            kernels.ema(self.d, w - before, 1 - self.s.decay ** (1 / self.delay))

    def rate(self, k):
        """Return the step size of update k after the warm-up (T1)."""
        if k < 0 or not self.s.rescale:
            return self.s.learning_rate
        return self.s.learning_rate / self.delay ** (1 - min(k / self.s.rescale, 1))


ALGORITHM = stream(
    schedule,
    Settings,
    worker=worker,
    schedules={"pipemare": schedule},
    equivalences=(Equivalence("during the warm-up it is SGD", to="sgd", workers=3, settings={"warm_up": 100.0}),),
    stable_rate=0.03,
    steps_to_learn=400,
)
