"""AsySVRG: lock-free threads with variance-reduced steps, so that a constant learning rate reaches the optimum.

An epoch passes over the data three times. First the threads compute the gradient G of the whole objective at the
anchor a, a share each; then, after a barrier, they take a step for each sample in two more passes:

    G <- mean of g_i(a)        u <- u - lr (g_i(u) - g_i(a) + G)        a <- u, or the mean of the u that were read

Near the optimum g_i(u) and g_i(a) are nearly equal and G is nearly 0, so steps vanish though no single g_i does. The
paper's three ways of reading differ in what locks guard: every read and every step; steps alone, where a read may see
half of a step; or nothing.

Price: an all-reduce of d elements per epoch; G is dense, so every step writes all d. Memory: a and G on top of
the u that all share, and with `average` its mean.
Staleness: about N-1 steps; none from one epoch to the next.
Source: Zhao & Li, AAAI 2016; Johnson & Zhang, NIPS 2013 (SVRG).
"""

from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Knobs, knob

GUARDS = {"consistent": "locked", "inconsistent": "writes", "unlock": "none"}


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size per sample, constant", gt=0, le=1000)
    reading: Literal["consistent", "inconsistent", "unlock"] = knob(
        "unlock", "what locks guard: consistent (reads and steps), inconsistent (steps) or unlock"
    )
    passes: int = knob(2, "passes over the data between two anchors", ge=1, le=100, unit="epochs")
    average: bool = knob(False, "make the next anchor the mean of the vectors that were read, not the last one")


def check(workers, batch, workload, s):
    if workload.over_batch:
        raise ValueError(
            "with batch norm a sample's gradient depends on its batch, so G is not the mean of the g_i it should "
            "correct; use another model, such as cnn."
        )


def elements_sent(shape, s):
    epoch = (1 + s.passes) * shape.per_epoch
    sums = (shape.steps + s.passes * shape.per_epoch) // epoch + s.average * (shape.steps // epoch)
    return 2 * (shape.workers - 1) * shape.parameters * sums


def worker(comm, task, s=Settings()):
    a = task.start()  # (d,)
    shared = comm.shared(a, GUARDS[s.reading])
    share, walks = task.per_epoch, s.passes * task.per_epoch
    for step in task.steps(together=True):
        k = step % (share + walks)
        if k == 0:
            G, seen = kernels.zeros_like(a), kernels.zeros_like(a) if s.average else None
            task.holds("buffers", (1 + s.average) * a.nbytes)  # these two
        if k < share:
            kernels.add(G, task.gradient(a)[1])
            if k == share - 1:
                kernels.scale(G, 1 / share)
                comm.all_reduce(G, op="mean")
        else:
            task.descend(shared, descend, s.learning_rate, a, G, compiled=descend_rows, dense=True, gradients=2)
            if s.average:
                kernels.ema(seen, shared.read(), 1 / (1 + k - share))
            if k == share + walks - 1:
                a = anchor(comm, shared, seen)
        if comm.rank == 0:
            task.report(shared.vector, new=False)
    comm.barrier()
    return shared.read()


def descend(u, sample, rate, a, G):
    """Take the corrected step of one sample, and return the sample's loss at u."""
    v = slice(None)  # G is dense
    loss, g = sample.gradient(u[v])
    _, at_anchor = sample.gradient(a)
    kernels.sgd(g, at_anchor, 1.0)  # g - at_anchor: what the sample's gradient has changed since
    kernels.add(g, G)
    u.add(v, -rate, g)
    return loss


def descend_rows(u, indices, rows, rate, a, G, atomic):
    """Take the step of `descend` for each of these sparse rows, in a compiled loop; return the sum of their losses."""
    return kernels.svrg(u, kernels.zeros_like(u), indices, *rows, a, G, rate, atomic)


def anchor(comm, shared, mean):
    """Wait for all threads' last steps, and return the anchor of the next epoch.

    A `mean` is averaged over the threads, and the shared vector is set to it. No thread takes a step before all have
    reduced the next G.
    """
    comm.barrier()  # the last step is written
    if mean is None:
        return shared.read()
    comm.all_reduce(mean, op="mean")
    if comm.rank == 0:
        shared.add(mean - shared.read())
    return mean


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    elements_sent=elements_sent,
    deterministic=False,
    counts_staleness=True,
    steps_to_learn=60,
    diverging_rate=0.7,  # 900 diverges within the first mini-batch
)
