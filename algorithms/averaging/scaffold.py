"""SCAFFOLD corrects the drift of workers with different data; without the correction it is FedAvg or FedProx.

In a round, some of the workers, A, start from the common model x and take H steps each; then their mean moves x:

    y <- y - lr (g_i(y) - c_i + c + mu (y - x))        H times, from y = x
    c_i' <- c_i - c + (x - y) / (H lr)                 the mean gradient along the way
    x <- x + outer_rate mean over A of (y - x)         c <- c + (1/N) sum over A of (c_i' - c_i)        c_i <- c_i'

c_i is the mean gradient of worker i's own data, c that of all data: adding c - c_i turns the worker's steps towards
the common direction, so that x ends at the optimum where plain averaging misses it (see local_sgd). The sum of all
c_i is always N c. `average` is FedAvg: no c, no mu. `prox` is FedProx: no c, but a spring of stiffness mu to x, which
makes the drift smaller, and the bias too. A worker that is not in A computes nothing in the round.

Price: an all-reduce per round, two for scaffold: 2 (N-1) d or 4 (N-1) d elements; scaffold keeps c, c_i and two more
vectors.
Staleness: none; models diverge for H - 1 steps, and c_i is as old as the worker's last round.
Source: Karimireddy et al., ICML 2020, arXiv:1910.06378, Algorithm 1 with option II; McMahan et al., AISTATS 2017
(FedAvg); Li et al., MLSys 2020, arXiv:1812.06127 (FedProx).
"""

from typing import Any, Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob

FOUR: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size of the workers", gt=0, le=1000)
    kind: Literal["average", "prox", "scaffold"] = knob(
        "scaffold", "average (FedAvg), with a spring to the common model (FedProx), or with control variates (SCAFFOLD)"
    )
    period: int = knob(10, "H, steps that a worker takes in a round", ge=1, le=10_000, unit="steps", postpones=True)
    sampled: int | None = knob(None, "number of workers that train in a round", none="all of them", ge=1, le=4096)
    outer_rate: float = knob(1.0, "step size of the common model towards the workers' mean", gt=0, le=100)
    prox: float = knob(0.1, "mu, stiffness of the spring to the common model", when={"kind": ("prox",)}, ge=0, le=1000)


def check(workers, batch, workload, s):
    if s.sampled and s.sampled > workers:
        raise ValueError(f"{s.sampled} workers cannot be sampled from {workers}; use at most {workers}.")


def elements_sent(shape, s):
    rounds = -(-shape.steps // s.period)
    return 2 * (shape.workers - 1) * shape.parameters * rounds * (2 if s.kind == "scaffold" else 1)


def worker(comm, task, s=Settings()):
    x = task.start()  # (d,), the same on every rank, and it stays so
    y, p = kernels.keep(kernels.copy(x)), kernels.keep(kernels.empty_like(x))
    if s.kind == "scaffold":
        c, own, turn = (kernels.keep(kernels.zeros_like(x)) for _ in range(3))  # turn: c - c_i
        change = kernels.keep(kernels.empty_like(x))
    draw = np.random.default_rng([task.seed, 0x5CAF])  # the same on all ranks; 0x5CAF: a stream of its own

    def sample():
        return set(draw.choice(comm.size, s.sampled or comm.size, replace=False).tolist())

    def meet(taken):
        kernels.displacement(p, y, x, s.outer_rate * comm.size / len(active))
        if s.kind == "scaffold":
            kernels.displacement(change, x, y, 1 / (taken * s.learning_rate))
            kernels.residual(change, c)
            if comm.rank in active:
                kernels.add(own, change)
            else:
                change[:] = 0
            comm.all_reduce(change, op="mean")
            kernels.add(c, change)
            kernels.displacement(turn, c, own, 1.0)
        comm.all_reduce(p, op="mean")
        kernels.add(x, p)
        y[:] = x
        if comm.rank == 0:
            task.report(x)

    active, taken = sample(), 0
    for _ in task.steps(together=True):
        if comm.rank in active:
            _, g = task.gradient(y)
            if s.kind == "prox":
                kernels.displacement(p, y, x, s.prox)
                kernels.add(g, p)
            elif s.kind == "scaffold":
                kernels.add(g, turn)
            kernels.sgd(y, g, s.learning_rate)
        taken += 1
        if taken == s.period:
            meet(taken)
            active, taken = sample(), 0
    if taken:
        meet(taken)
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", exactness="RND"),
        Equivalence(
            "without its correction it is local SGD",
            to="local_sgd",
            settings={"kind": "average", "period": 4},
            to_settings={"period": 4},
            **FOUR,
        ),
        Equivalence(
            "without its spring FedProx is FedAvg",
            to="scaffold",
            settings={"kind": "prox", "prox": 0, "period": 4},
            to_settings={"kind": "average", "period": 4},
            **{**FOUR, "exactness": "BIT"},
        ),
        Equivalence("with rounds of one step it is synchronous SGD", to="sync_sgd", settings={"period": 1}, **FOUR),
    ),
)
