"""Model averaging: every worker trains alone for a while, then all continue from the mean of their models.

Every `period` local steps the N workers average their models; lr g may be the update of another optimizer:

    w_i <- w_i - lr g_i(w_i)        every period        w_i <- (w_1 + ... + w_N) / N

N workers of `period` steps move as far as one worker of `period` steps, only with less noise: at the same lr, progress
per sample falls as N grows. Optimizer state is kept by each worker, reset, or averaged like the model.

Price: an all-reduce per period, 2 (N-1) d elements in total by the ring; as many again for each state vector that is
averaged.
Staleness: none; models diverge for at most period - 1 steps.
Source: McDonald, Hall & Mann, NAACL 2010; Su & Chen, arXiv:1507.01239.
"""

from typing import Any

from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.periodic_averaging import StatePolicy, elements_sent_with_state, sync_optimizer_state

EVERY_STEP: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    period: int = knob(10, "local steps between averages", ge=1, le=10_000, unit="steps", postpones=True)
    update: Rule = knob("sgd", "optimizer of every worker")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    state: StatePolicy = knob("keep", "what averaging does to the optimizer's state", unless={"update": ("sgd",)})


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w, s.momentum)
    alone = 0  # steps since the last average
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        if task.is_usable(g):
            rule.step(w, g, s.learning_rate)
        alone += 1
        if alone == s.period:
            average(comm, task, w, rule, s)
            alone = 0
    if alone:
        average(comm, task, w, rule, s)
    return w


def average(comm, task, w, rule, s):
    comm.all_reduce(w, op="mean")
    sync_optimizer_state(comm, rule, s.state)
    if comm.rank == 0:
        task.report(w)


ALGORITHM = Algorithm(
    worker,
    Settings,
    skips_overflow=True,
    elements_sent=elements_sent_with_state,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "averaging in every step gives synchronous SGD", to="sync_sgd", settings={"period": 1}, **EVERY_STEP
        ),
        Equivalence(
            "averaging in every step with momentum gives synchronous SGD, though every worker has its own velocity",
            to="sync_sgd",
            settings={"period": 1, "update": "momentum", "state": "keep"},
            to_settings={"update": "momentum"},
            **EVERY_STEP,
        ),
        Equivalence(
            "averaging in every step with Nesterov's momentum gives synchronous SGD, too",
            to="sync_sgd",
            settings={"period": 1, "update": "nesterov", "state": "keep"},
            to_settings={"update": "nesterov"},
            **EVERY_STEP,
        ),
        Equivalence(
            "without an average before the end it is one-shot averaging",
            to="one_shot",
            workers=4,
            settings={"period": 10_000},
        ),
    ),
)
