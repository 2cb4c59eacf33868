"""Adagrad shortens the steps of each coordinate as that coordinate's past gradients add up.

    s <- s + g(w)^2        w <- w - lr g / (sqrt(s) + eps)

A weight with rare or small gradients keeps a large step; where gradients stay equally large the effective rate falls as
1 / sqrt(t). Scaling a coordinate's gradients by a constant changes nothing (with eps 0, as in DistBelief): the first
step of every coordinate has length lr.

Price: no communication; one more vector, s. Staleness: none.
Source: Duchi, Hazan & Singer, Journal of Machine Learning Research 12, 2011.
"""

import kernels
from algorithms.algorithm import Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.05, "size of each weight's first step", gt=0, le=1000)
    eps: float = knob(
        1e-8, "small constant added to the root; with 0, a weight without gradients does not move", ge=0, le=1000
    )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    squares = kernels.state_like(w)
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        kernels.adagrad(w, squares, g, s.learning_rate, s.eps)
        task.report(w)
    return w


ALGORITHM = sequential(worker, Settings, skips_overflow=True)
