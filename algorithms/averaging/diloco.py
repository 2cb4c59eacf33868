"""DiLoCo: long stretches of local Adam steps, and one outer step of Nesterov's momentum between them.

All workers start from x and take `period` inner steps with Adam, whose state stays local and is never reset. Their mean
displacement, negated, is the outer gradient:

    w_i <- w_i - lr adam(g_i(w_i))        every period        p <- mean of x - w_i
    v <- mu v + p        x <- x - outer_rate (p + mu v)        w_i <- x

`weight_decay` makes the inner optimizer AdamW. With plain SGD inside it is local SGD for mu 0 and outer_rate 1, and for
any mu BMUF in the paper's Nesterov form, seen at the look-ahead point: x is its Wg, and outer_rate its zeta. The idea
is the same; Adam inside is new, and so is a period of hundreds of steps, for islands of machines joined by slow links.

Price: an all-reduce per period, 2 (N-1) d elements in total by the ring; three more vectors of memory and Adam's two.
Staleness: none; models diverge for at most period - 1 steps.
Source: Douillard et al., arXiv:2311.08105, Algorithm 1 (outer rate 0.7, mu 0.9, period 500).
"""

from typing import Any

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.periodic_averaging import elements_sent

FOUR: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.005, "step size of the inner steps", gt=0, le=1000)
    period: int = knob(20, "H, inner steps between outer steps", ge=1, le=10_000, unit="steps", postpones=True)
    outer_rate: float = knob(
        0.7, "step size of the outer update; 1 without outer momentum is plain averaging", gt=0, le=100
    )
    outer_momentum: float = knob(
        0.9, "mu of the outer steps, the fraction of each step carried into the next", ge=0, lt=1
    )
    update: Rule = knob("adam", "inner optimizer")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    weight_decay: float = knob(
        0.0, "fraction of the weights removed per step, as a multiple of the learning rate", ge=0, le=1
    )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    x, v = kernels.keep(kernels.copy(w)), kernels.state_like(w)
    p = kernels.keep(kernels.empty_like(w))
    inner = optimizer(s.update, w, s.momentum)

    def outer_step():
        kernels.displacement(p, x, w, 1.0)
        comm.all_reduce(p, op="mean")
        kernels.nesterov(x, v, p, s.outer_rate, s.outer_momentum)
        w[:] = x
        if comm.rank == 0:
            task.report(x)

    alone = 0  # inner steps since the last outer one
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        if s.weight_decay:
            kernels.scale(w, 1 - s.learning_rate * s.weight_decay)
        inner.step(w, g, s.learning_rate)
        alone += 1
        if alone == s.period:
            outer_step()
            alone = 0
    if alone:
        outer_step()
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    compresses="mean",
    equivalences=(
        Equivalence(
            "with SGD inside and a plain step outside it is local SGD",
            to="local_sgd",
            settings={"update": "sgd", "outer_rate": 1, "outer_momentum": 0, "period": 4},
            to_settings={"period": 4},
            **FOUR,
        ),
        Equivalence(
            "with Adam inside and a plain step outside it is model averaging that keeps Adam's memory",
            to="model_averaging",
            settings={"outer_rate": 1, "outer_momentum": 0, "period": 4},
            to_settings={"update": "adam", "period": 4},
            **FOUR,
        ),
        Equivalence(
            "with SGD inside, and an outer step after every inner one, it is synchronous SGD with Nesterov's momentum",
            to="sync_sgd",
            settings={"update": "sgd", "outer_rate": 1, "outer_momentum": 0.9, "period": 1},
            to_settings={"update": "nesterov", "momentum": 0.9},
            **FOUR,
        ),
    ),
)
