"""Hogwild: threads run SGD in one shared vector w at the same time, without locks.

Each thread takes one sample after the other, reads the sample's coordinates v, and adds to those:

    w_v <- w_v - lr g_v(w)        lr <- back_off lr after each epoch

If samples have few of many coordinates, threads rarely collide, and then it matters little that g was computed from a
value that has changed since (a conflict), or that of two simultaneous additions one is lost; with `atomic` none is.
With dense gradients every step is a conflict. With `locked`, the baseline for comparisons, threads take turns at w.

Price: no messages; cache lines travel between cores, one for each coordinate written. Memory: one w for all.
Staleness: the steps that others write between a read and its write, about N-1; measured on the simulated cluster.
Source: Niu, Recht, Re & Wright, NIPS 2011.
"""

import math

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, Split, knob, nothing_sent


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size per sample", gt=0, le=1000)
    back_off: float = knob(
        1.0, "factor that multiplies the learning rate after each epoch; about 0.9 in the paper", gt=0, le=1
    )
    atomic: bool = knob(False, "make additions to the shared vector atomic, so that none is lost")
    locked: bool = knob(False, "lock the whole shared vector for every read and every write")


def check(workers, batch, workload, s):
    if s.atomic and s.locked:
        raise ValueError("under a lock no other thread adds, so atomic has no effect; choose either atomic or locked.")


def notes(e):
    if e.workload != "sparse":
        yield (
            f"Each sample is its own step, and on {e.workload} a step reads and writes every parameter: that is "
            "why Hogwild processes far fewer samples per second here than a method that writes them once per batch, "
            "and most of its writes conflict. It is meant for samples that touch few parameters: workload sparse."
        )


def worker(comm, task, s=Settings()):
    shared = comm.shared(task.start(), guard="locked" if s.locked else "atomic" if s.atomic else "none")
    for step in task.steps():
        rate = s.learning_rate * s.back_off ** (step // task.per_epoch)
        task.descend(shared, descend, rate, compiled=descend_rows)  # one sample after the other
        if comm.rank == 0:
            task.report(shared.vector, new=False)
    return wait_and_read(comm, shared)


def descend(w, sample, rate):
    """Take the step of one sample, without waiting for other threads, and return the sample's loss."""
    v = sample.coordinates  # (k,) of d, few if the sample is sparse
    w_v = w[v]  # read
    loss, g_v = sample.gradient(w_v)  # others write meanwhile
    w.add(v, -rate, g_v)
    return loss


def descend_rows(w, indices, rows, rate, atomic):
    """Take the step of `descend` for each of these sparse rows, in a compiled loop; return the sum of their losses."""
    return kernels.hogwild(w, w[:0], indices, *rows, rate, 1, atomic)


def wait_and_read(comm, shared):
    """Wait until all threads that are not lost have called this, after their last step. Return the model."""
    others = {rank for rank in range(comm.size) if rank != comm.rank}
    for other in others:
        comm.send(None, other)
    while others:
        others.discard(comm.recv_any()[0])
    return shared.read()


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    notes=notes,
    elements_sent=nothing_sent,
    split=lambda workers, s: Split(workers, math.inf, math.inf),  # threads write straight into one vector
    deterministic=False,
    counts_staleness=True,
    equivalences=(Equivalence("one thread that takes single samples gives SGD", to="sgd", batch=1),),
    steps_to_learn=50,
    diverging_rate=0.8,  # 900 diverges within the first mini-batch
)
