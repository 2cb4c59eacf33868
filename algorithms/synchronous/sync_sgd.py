"""Synchronous SGD averages the gradients of all workers in every step: one SGD step with a batch N times as large.

Every worker holds the same w and computes a gradient g_i on its own mini-batch:

    g = (g_1 + ... + g_N) / N        w <- w - lr g        (or the update of another optimizer)

It is the mean and not the sum, so lr keeps its meaning; with N times the batch it may be up to N times as large.

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring; all workers wait for the slowest.
Staleness: none.
Source: Valiant, CACM 33(8), 1990 (supersteps); Goyal et al., arXiv:1706.02677 (mean, linear scaling of lr).
"""

from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        comm.all_reduce(g, op="mean")
        if not task.is_usable(g):
            continue
        rule.step(w, g, s.learning_rate)
        task.store(w)
        if comm.rank == 0:
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    skips_overflow=True,
    stores_weights=True,
    compresses="mean",
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence("N workers give SGD with N times the batch", to="sgd", exactness="RND", workers=4, to_batch=4),
    ),
)
