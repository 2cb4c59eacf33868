"""Local SGD takes several steps between two averages; post-local SGD starts to do so only later.

Every worker takes local steps from the common model c. Every `period` steps, or in every step during the first
`switch` epochs (post-local), all move to their mean, which is formed from displacements:

    w <- w - lr g(w)        every period        p <- w - c        c <- c + mean p        w <- c

lr g may be the update of another optimizer; its state stays on the worker and is never averaged. If the data
shards are alike, the drift is noise, which may even help. If not, it is a bias: workers with more curved losses move
farther in fewer steps, and with period H the fixed point on quadratics of curvature h_i around c_i is

    sum q_i c_i / sum q_i        q_i = 1 - (1 - lr h_i)^H        the optimum only for H = 1 or equal curvatures

Price: an all-reduce per period, 2 (N-1) d elements in total by the ring; two more vectors of memory, c and p.
Staleness: none; models diverge for at most period - 1 steps ("spread": squared distance from their mean).
Source: Stich, ICLR 2019, arXiv:1805.09767; Lin, Stich, Patel & Jaggi, ICLR 2020, arXiv:1808.07217, and their code.
"""

from math import ceil
from typing import Any

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer

FOUR: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    period: int = knob(10, "H, local steps between averages", ge=1, le=10_000, unit="steps", postpones=True)
    switch: float = knob(
        0.0, "initial epochs in which workers average after every step (post-local SGD)", ge=0, le=10_000, unit="epochs"
    )
    update: Rule = knob("sgd", "optimizer of every worker")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def elements_sent(shape, s):
    together = min(shape.steps, ceil(s.switch * shape.per_epoch))
    rounds = together + -(-(shape.steps - together) // s.period)
    return 2 * (shape.workers - 1) * shape.parameters * rounds


def notes(e):
    if not e.knobs.switch and e.knobs.period > 1:
        yield "With `switch` 0, this is model_averaging with the same period, up to rounding."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    c = kernels.keep(kernels.copy(w))  # the last common model
    p = kernels.keep(kernels.empty_like(w))  # this worker's displacement from it
    rule = optimizer(s.update, w, s.momentum)
    alone = 0  # steps since the last average
    for step in task.steps(together=True):
        _, g = task.gradient(w)
        if task.is_usable(g):
            rule.step(w, g, s.learning_rate)
        alone += 1
        if alone == s.period or step < s.switch * task.per_epoch:
            average(comm, task, w, c, p)
            alone = 0
    if alone:
        average(comm, task, w, c, p)
    return w


def average(comm, task, w, c, p):
    kernels.displacement(p, w, c, 1.0)
    comm.all_reduce(p, op="mean")
    kernels.add(c, p)
    task.measure("spread", float((w - c) @ (w - c)))
    w[:] = c
    if comm.rank == 0:
        task.report(c)


ALGORITHM = Algorithm(
    worker,
    Settings,
    skips_overflow=True,
    notes=notes,
    elements_sent=elements_sent,
    compresses="mean",
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", exactness="RND"),
        Equivalence(
            "with an average in every step it is synchronous SGD", to="sync_sgd", settings={"period": 1}, **FOUR
        ),
        Equivalence(
            "with momentum it is synchronous SGD, too, though the velocities stay local",
            to="sync_sgd",
            settings={"period": 1, "update": "momentum"},
            to_settings={"update": "momentum"},
            **FOUR,
        ),
        Equivalence("before the switch it is synchronous SGD", to="sync_sgd", settings={"switch": 1000}, **FOUR),
        Equivalence(
            "averaged only at the end it is one-shot averaging", to="one_shot", settings={"period": 10_000}, **FOUR
        ),
    ),
)
