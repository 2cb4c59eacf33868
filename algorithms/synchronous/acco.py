"""ACCO hides the all-reduce of one half of the samples behind the gradient of the other half, without a delay.

An update has two mini-batches. While the gradients of the first are averaged, every worker computes those of the
second, and the other way around:

    compute    a_t at w~_t | b_t at w_t | a_t+1 at w~_t+1 | b_t+1 at w_t+1
    network        [ b_t-1 ]   [ a_t ]        [ b_t ]          [ a_t+1 ]

    w~_t+1 <- step(w_t, mean a_t)                     an estimate of the next weights, from one half
    w_t+1  <- step(w_t, (mean a_t + mean b_t) / 2)    the update, in time for the second half of the next one

So the first half is computed at an estimate of the weights instead of at old weights, as in `delayed`. The estimate
leaves no trace in the state of the optimizer.

Price: the bytes of synchronous SGD, 2 (N-1) d elements for each mini-batch by the ring; the estimate, a second
gradient and a copy of the optimizer's state in memory. A mini-batch takes the longer of its computation and an
all-reduce. Staleness: none.
Source: Nabli et al., arXiv:2406.02613.
"""

import kernels
from algorithms.algorithm import Algorithm, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.3, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    estimate = kernels.keep(kernels.copy(w))
    rule = optimizer(s.update, w, s.momentum)
    half = first = second = None  # the first half's mean gradient, and the sums under way

    def update(g):
        rule.step(w, g, s.learning_rate)
        if comm.rank == 0:
            task.report(w)

    def mean():
        kernels.add(half, second.wait())
        kernels.scale(half, 1 / 2)
        return half

    for _ in task.steps(together=True):
        if first is None:
            _, g = task.gradient(estimate)
            if second:
                update(mean())
            first = comm.all_reduce(g, op="mean", async_op=True)
        else:
            _, g = task.gradient(w)
            half, first = first.wait(), None
            task.holds("gradients", 2 * g.nbytes)
            estimate[:] = w
            rule.try_step(estimate, half, s.learning_rate)
            second = comm.all_reduce(g, op="mean", async_op=True)
    if first:
        update(first.wait())  # the run ends between the halves
    elif second:
        update(mean())
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    per_update=lambda s: 2,
    elements_sent=ring_all_reduces,
    computes_together=True,
)
