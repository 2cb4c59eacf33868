"""ACCO hides the all-reduce of one half of the samples behind the gradient of the other half, without a delay.

An update has two mini-batches. While the gradients of the first are averaged, every worker computes those of the
second, and the other way around:

    compute    a_t at w~_t | b_t at w_t | a_t+1 at w~_t+1 | b_t+1 at w_t+1
    network        [ b_t-1 ]   [ a_t ]        [ b_t ]          [ a_t+1 ]

    w~_t+1 <- step(w_t, mean a_t)                     an estimate of the next weights, from one half
    w_t+1  <- step(w_t, (mean a_t + mean b_t) / 2)    the update, in time for the second half of the next one

So the first half is computed at an estimate of the weights instead of at old weights, as in `delayed`. The estimate
leaves no trace in the state of the optimiser.

Price: the bytes of synchronous SGD, 2 (N-1) d elements for each mini-batch by the ring; the estimate, a second
gradient and a copy of the optimiser's state in memory. A mini-batch takes the longer of its computation and an
all-reduce. Staleness: none.
Source: Nabli et al., arXiv:2406.02613.
"""

import kernels
from algorithms.algorithm import Algorithm, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.3, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimiser of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    estimate = kernels.keep(kernels.copy(w))
    rule = optimizer(s.update, w, s.momentum)
    sums = []  # the first half's mean gradient, then the handle of the second one's

    def update():
        """Take the step of both halves, or of the first alone if the run ends between them."""
        g, *second = sums
        sums.clear()
        for handle in second:
            kernels.add(g, handle.wait())
            kernels.scale(g, 1 / 2)
        rule.step(w, g, s.learning_rate)
        if comm.rank == 0:
            task.report(w)

    handle = None  # of the first half's sum
    for step, _ in enumerate(task.steps(together=True)):
        if step % 2 == 0:
            _, g = task.gradient(estimate)
            if sums:
                update()
            handle = comm.all_reduce(g, op="mean", async_op=True)
        else:
            _, g = task.gradient(w)
            sums.append(handle.wait())
            task.holds("gradients", 2 * g.nbytes)
            estimate[:] = w
            rule.try_step(estimate, sums[0], s.learning_rate)
            sums.append(comm.all_reduce(g, op="mean", async_op=True))
            handle = None
    if handle:
        sums.append(handle.wait())
    if sums:
        update()
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    per_update=lambda s: 2,
    elements_sent=ring_all_reduces,
    computes_together=True,
)
