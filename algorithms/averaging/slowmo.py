"""SlowMo treats the mean displacement of local SGD as a gradient, and follows it with an outer, slow momentum.

All workers start from x, take `period` local steps, and average their displacements; in units of lr that is a gradient,
with which x takes a step of momentum beta and slow rate alpha:

    p <- mean of (x - w_i) / lr        u <- beta u + p        x <- x - alpha lr u        w_i <- x

The division by lr lets u survive a change of lr. With a constant one it is BMUF's classical form with zeta = alpha
and bm = beta; with beta 0 and alpha 1 it is local SGD; with period 1 synchronous SGD with momentum beta.

Price: an all-reduce per period, 2 (N-1) d elements in total by the ring, as many again for each state vector that is
averaged; three more vectors of memory. Staleness: none; models diverge for at most period - 1 steps.
Source: Wang, Tantia, Ballas & Rabbat, ICLR 2020, arXiv:1910.00643, Algorithm 1, as in torchdistx.
"""

from typing import Any

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.periodic_averaging import StatePolicy, elements_sent_with_state, sync_optimizer_state

FOUR: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "gamma, step size of the local steps", gt=0, le=1000)
    period: int = knob(10, "local steps between slow steps", ge=1, le=10_000, unit="steps", postpones=True)
    slow_rate: float = knob(
        1.0, "alpha, step size of the slow update; 1 without slow momentum is plain averaging", gt=0, le=100
    )
    slow_momentum: float = knob(0.5, "beta, fraction of the last slow step carried into the next", ge=0, lt=1)
    update: Rule = knob("sgd", "optimizer of every worker")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    state: StatePolicy = knob("keep", "what a slow step does to the optimizer's state", unless={"update": ("sgd",)})


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    x, u = kernels.keep(kernels.copy(w)), kernels.state_like(w)
    p = kernels.keep(kernels.empty_like(w))
    rule = optimizer(s.update, w, s.momentum)

    def slow_step():
        kernels.displacement(p, x, w, 1 / s.learning_rate)
        comm.all_reduce(p, op="mean")
        kernels.momentum(x, u, p, s.slow_rate * s.learning_rate, s.slow_momentum)
        w[:] = x
        sync_optimizer_state(comm, rule, s.state)
        if comm.rank == 0:
            task.report(x)

    alone = 0  # steps since the last slow one
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        rule.step(w, g, s.learning_rate)
        alone += 1
        if alone == s.period:
            slow_step()
            alone = 0
    if alone:
        slow_step()
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent_with_state,
    compresses="mean",
    equivalences=(
        Equivalence(
            "without slow momentum it is local SGD",
            to="local_sgd",
            settings={"slow_momentum": 0, "period": 4},
            to_settings={"period": 4},
            **FOUR,
        ),
        Equivalence(
            "with a slow step after every local one it is synchronous SGD with momentum",
            to="sync_sgd",
            settings={"slow_momentum": 0.9, "period": 1},
            to_settings={"update": "momentum", "momentum": 0.9},
            **FOUR,
        ),
        Equivalence(
            "with the same momentum and rate it is BMUF in its classical form",
            to="bmuf",
            settings={"slow_momentum": 0.6, "slow_rate": 0.9, "period": 3},
            to_settings={"form": "classical", "block_momentum": 0.6, "block_rate": 0.9, "period": 3},
            **FOUR,
        ),
    ),
)
