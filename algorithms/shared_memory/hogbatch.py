"""HogBatch: Hogwild whose threads write once for several samples, so that fewer cache lines move.

Each thread accumulates the gradients of b samples at the w that it reads, in its own memory, and writes the sum:

    acc <- sum of g_i(w) over b samples        w_v <- w_v - lr acc_v for the coordinates v of acc

With b = 1 it is Hogwild. With a larger b coordinates that several samples share are written only once (hardware
efficiency), but steps are fewer, longer and staler (statistical efficiency).

Price: no messages; one cache line for each coordinate of acc. Memory: one w for all, an acc for each thread.
Staleness: about N-1 writes, each of b samples.
Source: Sallinen, Satish, Smelyanskiy, Sury & Re, IPDPS 2016.
"""

import math
from functools import partial

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, Split, knob, nothing_sent
from algorithms.shared_memory.hogwild import wait_and_read


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size per sample", gt=0, le=1000)
    per_write: int = knob(
        8, "b, samples a thread sums before each write; 0 is the whole mini-batch", ge=0, le=65536, unit="samples"
    )
    back_off: float = knob(1.0, "factor that multiplies the learning rate after each epoch", gt=0, le=1)
    atomic: bool = knob(False, "make additions to the shared vector atomic, so that none is lost")


def worker(comm, task, s=Settings()):
    shared = comm.shared(task.start(), guard="atomic" if s.atomic else "none")
    b = s.per_write or task.batch
    for step in task.steps():
        rate = s.learning_rate * s.back_off ** (step // task.per_epoch)
        task.descend(shared, descend, rate, compiled=partial(descend_rows, b), per_step=b)
        if comm.rank == 0:
            task.report(shared.vector, new=False)
    return wait_and_read(comm, shared)


def descend(w, samples, rate):
    """Take one step for several samples, and return the sum of their losses."""
    v = samples.coordinates  # (k,), those of any of them
    w_v = w[v]  # read once
    loss, acc = samples.gradient(w_v)  # (k,), the sum over the samples
    w.add(v, -rate, acc)  # written once
    return loss


def descend_rows(b, w, indices, rows, rate, atomic):
    """Take the step of `descend` for each b of the sparse rows, in a compiled loop; return the sum of their losses."""
    return kernels.hogwild(w, kernels.zeros_like(w), indices, *rows, rate, b, atomic)


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=nothing_sent,
    split=lambda workers, s: Split(workers, 1, math.inf),  # one w, and an acc for each thread
    deterministic=False,
    counts_staleness=True,
    equivalences=(
        Equivalence("one sample per write gives Hogwild", to="hogwild", workers=3, settings={"per_write": 1}),
        Equivalence(
            "one thread gives mini-batch SGD with the sum of gradients",
            to="sgd",
            batch=4,
            settings={"per_write": 0},
            to_settings={"learning_rate": 0.4},
        ),
    ),
    diverging_rate=0.7,  # 900 diverges within the first mini-batch
)
