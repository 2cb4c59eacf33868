"""One-shot averaging: every worker trains alone to the end, then the models are averaged.

Worker i takes SGD steps on its own data shard, without communication:

    w_i <- w_i - lr g_i(w_i)        at the end        v <- (w_1 + ... + w_N) / N

The mean divides the variance of the N models by N. It does not reduce what they have in common: the remaining distance,
and the bias of a constant lr. All start at the same point; the mean of two good networks that started at different
points is a bad network. During training worker 0 reports its own replica, as no average exists.

Price: one all-reduce, 2 (N-1) d elements in the whole run; no worker waits before the end.
Staleness: none; no gradient of another worker is ever applied.
Source: Zinkevich, Weimer, Smola & Li, Parallelized Stochastic Gradient Descent, NIPS 2010.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)


def elements_sent(shape, s):
    return 2 * (shape.workers - 1) * shape.parameters


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), the same on every rank
    for _ in task.steps():
        _, g = task.gradient(w)
        kernels.sgd(w, g, s.learning_rate)
        if comm.rank == 0:
            task.report(w)
    comm.all_reduce(w, op="mean")
    if comm.rank == 0:
        task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
