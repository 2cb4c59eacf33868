"""SPARTA averages a small fraction of the parameters after every step, but no gradients.

Every worker trains on its own. After each step all move the same few parameters S, the same on all ranks, to their
mean:

    w_i <- w_i - lr g_i(w_i)        w_i[S] <- mean over the ranks of w_j[S]        |S| = fraction d

S is `random`, drawn again in every step, or one of the `parts` of a permutation, taken in turn, so that every parameter
is averaged once in 1 / fraction steps. The sum of the workers' models is what local steps alone would make it.
Optimizer state is never exchanged. At the end the models are averaged; until then worker 0 reports its own.

Price: 2 (N-1) fraction d elements per step by the ring, and 2 (N-1) d at the end; no more memory.
Staleness: none; a parameter drifts for 1 / fraction steps on average between two means.
Source: Beton, Baioumy, van der Ouderaa et al., "Improving the Efficiency of Distributed Training using Sparse Parameter
Averaging", OpenReview stFPf3gzq1, 2025, and strategy/sparta.py of EXO Gym.
"""

from math import ceil
from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from kernels.arrays import shares


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    fraction: float = knob(0.005, "fraction of the parameters averaged after each step", gt=0, le=1)
    choose: Literal["random", "parts"] = knob(
        "random", "which parameters: drawn again in every step (random), or parts of a permutation in turn"
    )
    update: Rule = knob("sgd", "optimizer of every worker")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def elements_sent(shape, s):
    sizes = [len(chosen) for chosen, _ in zip(places(shape.parameters, s, 0), range(shape.steps), strict=False)]
    return 2 * (shape.workers - 1) * (sum(sizes) + shape.parameters)


def places(d, s, seed):
    """Yield, for each step, the sorted indices of the parameters to average after it; they are the same on
    every rank.
    """
    draw = np.random.default_rng([seed, 0x5BA])  # 0x5BA: a stream of its own
    if s.choose == "parts":
        order = draw.permutation(d).astype(np.int32)
        parts = [np.sort(order[part]) for part in shares(d, min(d, ceil(1 / s.fraction)))]
        while True:
            yield from parts
    while True:
        yield np.sort(draw.choice(d, ceil(s.fraction * d), replace=False, shuffle=False)).astype(np.int32)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), the same on every rank
    rule = optimizer(s.update, w, s.momentum)
    chosen = places(len(w), s, task.seed)
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        rule.step(w, g, s.learning_rate)
        index = kernels.beside(next(chosen), w)
        values = kernels.empty(len(index), w)
        kernels.gather(values, w, index)
        comm.all_reduce(values, op="mean")
        kernels.forget(w, index)
        kernels.scatter_add(w, index, values)
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
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "with a fraction of 1 it is synchronous SGD",
            to="sync_sgd",
            exactness="RND",
            workers=4,
            settings={"fraction": 1},
        ),
    ),
)
