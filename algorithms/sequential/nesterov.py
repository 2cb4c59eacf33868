"""Nesterov's momentum looks ahead: it takes the gradient where the velocity leads, then corrects the velocity.

PyTorch's form stores the look-ahead point w, Sutskever's the point x behind it:

    pytorch      v <- mu v + g(w)                       w <- w - lr (g + mu v)
    sutskever    u <- mu u - lr g(y)    x <- x + u      y <- x + mu u

y is w, and u is -lr v: one algorithm seen at two points. But the two forms return different points, so compare runs
of one form only; papers mostly state Sutskever's, code mostly has PyTorch's.

Price: no communication; one more vector, v (Sutskever's form: two, u and y). Staleness: none.
Source: Nesterov, Soviet Mathematics Doklady 27(2), 1983; Sutskever, Martens, Dahl & Hinton, ICML 2013.
"""

from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, sequential


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    momentum: float = knob(0.9, "mu, decay of the velocity", ge=0, lt=1)
    form: Literal["pytorch", "sutskever"] = knob(
        "pytorch", "which point is stored: the look-ahead point, or the one behind it"
    )


def worker(comm, task, s=Settings()):
    return pytorch(comm, task, s) if s.form == "pytorch" else sutskever(comm, task, s)


def pytorch(comm, task, s):
    w = task.start()  # (d,)
    v = kernels.state_like(w)
    for _ in task.steps():
        _, g = task.gradient(w)
        if not task.is_usable(g):
            continue
        kernels.nesterov(w, v, g, s.learning_rate, s.momentum)
        task.report(w)
    return w


def sutskever(comm, task, s):
    x = task.start()  # (d,)
    u, y = kernels.state_like(x), kernels.keep(kernels.copy(x))
    for _ in task.steps():
        _, g = task.gradient(y)
        if not task.is_usable(g):
            continue
        kernels.sutskever(y, x, u, g, s.learning_rate, s.momentum)
        task.report(x)
    return x


ALGORITHM = sequential(
    worker,
    Settings,
    skips_overflow=True,
    equivalences=(
        Equivalence("without momentum it is SGD", to="sgd", settings={"momentum": 0}),
        Equivalence(
            "without momentum Sutskever's form is SGD, too", to="sgd", settings={"momentum": 0, "form": "sutskever"}
        ),
    ),
)
