"""Judge the worker of this chapter's exercise: the direction and the learning rate of each update, and the cost.

The direction and the rate of an update are inferred from the reported models.
"""

import random

import numpy as np

from lessons.figure import run_now
from lessons.grading.accumulated import AccumulatedUpdates
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed
from lessons.large_batches.exercise import TARGETS

SIZES = 60_000, 90_000  # parameters: so many that everything else in a process is small
NEAR = 1e-2  # relative error of a rate, and of an update's deviation from its direction
POINTS = {
    "every full update is along the mean gradient of its whole batch": 4,
    "the rate of full updates is scaled, warms up, and falls": 3,
    "a partial last batch has the rate for its size": 2,
    "it sends no more than it must": 2,
    "it takes no longer than it must": 1,
    "each worker holds few vectors at once": 2,
}
ELSEWHERE = "judged only when every full update is along the mean gradient"
OTHERWISE = "judged only when every full update is made of the mean gradient"


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    whole, rated, last, frugal, quick, lean = POINTS
    dice = random.Random(seed)
    workers, accumulate, full = 3, dice.randint(7, 9), dice.randint(8, 9)
    rules = UpdateRules(
        learning_rate=dice.uniform(0.01, 0.02), accumulate=accumulate, warm_up=dice.randint(3, 4),
        milestone=dice.randint(5, 6),
    )  # fmt: skip
    steps = full * accumulate + dice.randint(1, accumulate - 1)
    values = {
        "algorithm": "accumulation", "accumulate": accumulate, "learning_rate": rules.learning_rate, "steps": steps,
        "workers": workers, "workload": "quadratic", "dimension": dice.randint(*SIZES), "points": 64, "batch": 2,
        "noise": 1.0, "condition": 4, "network": "1GbE", "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    textbook, held, probe = run_now(**values), Held(), LargeBatchProbe(workers, steps, rules)
    with solution.ranks(workers) as ranks, held.measure(*ranks):
        roles = [attempt.role("worker") for attempt in ranks]
        done = ranks[0].run(lambda comm, task, s: roles[comm.rank](*probe.wrap(comm, task)), beside=textbook, **values)
    wrong = probe.wrong(full)
    no_mean = wrong or probe.factor_error(full)
    yield whole, not no_mean, no_mean or f"{full} updates, each of {workers * accumulate} mini-batches"
    off = "" if no_mean else probe.rate_error(full)
    yield rated, not no_mean and not off, OTHERWISE if no_mean else off or f"{full} rates, all correct"
    missed = "" if wrong else probe.last_update_error(full)
    rest = f"{workers * (steps - full * accumulate)} mini-batches made the last update"
    yield last, not wrong and not missed, ELSEWHERE if wrong else missed or rest
    for mark, quantity, target in ((frugal, "bytes", "traffic"), (quick, "seconds", "time")):
        part = done.summary[quantity] / textbook.summary[quantity]
        told = f"{part:.2f} times what the textbook's worker takes; at most {TARGETS[target]} is allowed"
        yield mark, not wrong and part <= TARGETS[target], ELSEWHERE if wrong else told
    few, told = held.check_limit(
        4 * values["dimension"], TARGETS["memory"], f"{{:.1f}} vectors at once; at most {TARGETS['memory']} are allowed"
    )
    yield lean, not wrong and few, ELSEWHERE if wrong else told


class UpdateRules:
    """The rules for updates: the settings as the solution gets them, and the learning rates that follow from them."""

    def __init__(self, **settings: float):
        self.settings = settings

    def __getattr__(self, name: str) -> float:
        return self.settings[name]

    def rate(self, t: int, k: int) -> float:
        """Return the learning rate of update t, which is made of k mini-batches. Updates are counted from 0."""
        base = self.learning_rate
        if t < self.warm_up:
            return base + (k * base - base) * t / self.warm_up
        return k * base / (1 if t < self.milestone else 10)


class LargeBatchProbe(AccumulatedUpdates):
    """A proxy between a solution and its cluster that compares the solution's updates with the rules."""

    def __init__(self, workers: int, steps: int, rules: UpdateRules):
        super().__init__(workers, steps, rules.accumulate, "parameters")
        self.rules = rules

    def wrap(self, comm, task):
        """Return (comm, task, s) for one rank, observed by this probe."""
        seen = Restricted("comm", rank=comm.rank, size=comm.size, all_reduce=comm.all_reduce)
        return seen, self.task(comm, task), self.rules.settings

    def wrong(self, full: int) -> str:
        """Return a message about the first full update that is wrong; "" if all are right."""
        return self.count_error(full) or next(filter(None, map(self._wrong, range(full))), "")

    def factor_error(self, full: int) -> str:
        """Return a message if all full updates are too large or too small by the same factor; else "".

        The first rate of a warm-up is that of a single mini-batch, whatever k is. So if this rate is off, too, the rule
        for the rate is not to blame: the rates were multiplied by something other than the mean gradient.
        """
        factors = [self._step(t)[0] / self.rules.rate(t, self.parts(t)) for t in range(full)]
        factor = factors[0]
        if abs(factor - 1) < NEAR or any(abs(one / factor - 1) >= NEAR for one in factors):
            return ""
        named = {"s.accumulate": self.rules.accumulate, "comm.size": self.ranks, "k": self.parts(0)}
        divisor = next((name for name, value in named.items() if abs(factor / value - 1) < NEAR), "")
        told = (
            f"every update is {factor:.4g} times as large as rate * g, where g is the mean of its {self.parts(0)} "
            "gradients"
        )
        return told + (f"; did you forget to divide their sum by {divisor}?" if divisor else "")

    def rate_error(self, full: int) -> str:
        """Return a message about the first full update with a wrong learning rate; "" if there is none."""
        return next(filter(None, map(self._misrated, range(full))), "")

    def last_update_error(self, full: int) -> str:
        """Return a message if the last update, made of a partial batch, is wrong; else ""."""
        return self.leftover_error(full) or self._wrong(full) or self._misrated(full)

    def _step(self, t: int) -> tuple[float, float]:
        """Return the learning rate of update t, and the fraction of the update that is not along the mean gradient."""
        moved, g = (self.models[t] - self.models[t + 1]).astype("f8"), self.mean(t)
        rate = float(moved @ g / (g @ g))
        length = float(np.linalg.norm(moved))
        return rate, float(np.linalg.norm(moved - rate * g)) / length if length > 0 else 1.0

    def _wrong(self, t: int) -> str:
        if behind := self.behind(t):
            return f"{behind} for update {t}"
        for rank in range(self.ranks):
            for w in self.where.get((rank, t), []):
                if not np.allclose(w, self.models[t], rtol=1e-4, atol=1e-5):
                    return f"gradients of update {t} were not computed at the model before it, on rank {rank}"
        rate, beside = self._step(t)
        if not (np.isfinite(rate) and rate > 0 and beside < NEAR):
            return f"update {t} is not along the mean of its {self.parts(t)} gradients"
        return ""

    def _misrated(self, t: int) -> str:
        rate, wanted = self._step(t)[0], self.rules.rate(t, self.parts(t))
        right = abs(rate / wanted - 1) < NEAR
        return "" if right else f"update {t} has a rate of {rate:.4g}; expected {wanted:.4g}"
