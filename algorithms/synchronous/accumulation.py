"""Gradient accumulation adds up the gradients of several mini-batches before it averages over the workers.

Worker i stays at w for A mini-batches, so the memory of one mini-batch suffices for a batch A times as large:

    G_i <- G_i + g_i(w)        every A mini-batches:  w <- w - lr (G_1 + ... + G_N) / (N A)        G_i <- 0

Mini-batches have b samples each, so the mean of their means is the mean of all N A b. An epoch ends with a whole
update, so it is SGD with batch N A b, up to rounding, over any number of epochs. An incomplete last round takes the
mean of the mini-batches it has. Batch norm still sees b samples, or N b if it is synchronised.

Price: an all-reduce every A mini-batches, 2 (N-1) d elements in total by the ring: A times fewer per sample; d more
elements of memory. Staleness: none; there are A times fewer updates.
Source: Goyal et al., arXiv:1706.02677, section 3 (mean over all samples); no_sync() of PyTorch's
DistributedDataParallel.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.3, "step size", gt=0, le=1000)
    accumulate: int = knob(
        2,
        "A, mini-batches whose gradients each worker accumulates per update",
        ge=1,
        le=10_000,
        unit="steps",
        postpones=True,
    )
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def per_update(s):
    return s.accumulate


def elements_sent(shape, s):
    return 2 * (shape.workers - 1) * shape.parameters * -(-shape.steps // s.accumulate)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    G = kernels.keep(kernels.zeros_like(w))  # (d,)
    rule = optimizer(s.update, w, s.momentum)
    taken = 0

    def update():
        kernels.scale(G, 1 / taken)
        comm.all_reduce(G, op="mean")
        if task.is_usable(G):
            rule.step(w, G, s.learning_rate)
            if comm.rank == 0:
                task.report(w)
        G[:] = 0

    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        kernels.add(G, g)
        taken += 1
        if taken == s.accumulate:
            update()
            taken = 0
    if taken:
        update()
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    per_update=per_update,
    elements_sent=elements_sent,
    computes_together=True,
    skips_overflow=True,
    compresses="mean",
    equivalences=(
        Equivalence(
            "one mini-batch per update gives synchronous SGD", to="sync_sgd", workers=3, settings={"accumulate": 1}
        ),
    ),
)
