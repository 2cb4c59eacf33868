"""Judge the choices of this chapter's exercise by training with them.

They are compared with all other strategies that were allowed.
"""

import math
import random
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.choosing.exercise import TARGETS
from lessons.choosing.experiments.digits import DIGITS, RATES, ROUNDS, SMALL, arrival
from lessons.grading.grader import SolutionError

POINTS = {
    "it names a strategy, on every cluster": 1,
    "the strategy that it names fits into memory": 3,
    "the strategy that it names stays within the budget of bytes": 3,
    "it is near the oracle where the network is fast": 3,
    "it is near the oracle where messages are slow": 3,
    "it is near the oracle where gradients are large": 3,
}
MENU = SMALL | {"tensor": {"algorithm": "tensor", "batch": 128, "collective": ROUNDS, "steps": 64}}
BEST = RATES | {"tensor": 1.0}
OUTPUTS = 4 * 128 * 10  # bytes
SEED = 0  # of the training
COMPUTING = {"64": 3.389e-4, "256": 1.3507e-3}  # s of a step of one machine at 1e9 FLOP/s
MORE = 2
AMPLE = 1e12  # bytes: no limit


class Trained(NamedTuple):
    """The cost of training until the target loss is reached."""

    seconds: float
    steps: float
    sent: float  # bytes, by all
    memory: float  # bytes, of the fullest worker


@dataclass(frozen=True)
class HiddenCase:
    """A model and a cluster on which the solution's choice is tested. `kind` names the group of cases that share a
    mark.
    """

    kind: str
    hidden: str
    speed: float  # times 1e9 FLOP/s
    latency: float
    bandwidth: float
    memory: float = AMPLE
    budget: float = AMPLE
    splits: bool = True  # whether "tensor" is offered

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies available for this model."""
        return tuple(name for name in MENU if self.splits or name != "tensor")

    def arguments(self) -> tuple[dict, dict]:
        ideal = {name: train_strategy(name, self.hidden, 1.0) for name in self.strategies}
        model = {
            "gradient": 4 * (75 * int(self.hidden) + 10),
            "outputs": OUTPUTS,
            "steps": {name: round(one.steps) for name, one in ideal.items()},
            "memory": {name: one.memory for name, one in ideal.items()},
        }
        cluster = {
            "seconds": COMPUTING[self.hidden] / self.speed,
            "latency": self.latency,
            "bandwidth": self.bandwidth,
            "memory": self.memory,
            "budget": self.budget,
        }
        return model, cluster

    def train(self, name: str) -> Trained:
        """Train with a strategy on this cluster and return the cost."""
        return train_strategy(name, self.hidden, self.speed, self.latency, self.bandwidth)

    def is_within_limits(self, one: Trained) -> bool:
        """Return whether a run fits in memory and stays within the budget of bytes."""
        return one.memory <= self.memory and one.sent <= self.budget


def draw_cases(dice: random.Random) -> list[HiddenCase]:
    """Return eight cases. Their numbers are random, but each case is decided by the same thing in every draw, such as
    memory or latency.
    """
    some = dice.uniform
    return [
        HiddenCase("fast", "64", some(0.9, 1.1), some(2e-6, 6e-6), 1e10, splits=False),
        HiddenCase("slow", "64", some(8.0, 12.0), some(4e-4, 6e-4), 1e10),
        HiddenCase("slow", "64", some(0.9, 1.1), some(5.5e-4, 6.5e-4), 1e10),
        HiddenCase("slow", "64", some(0.08, 0.12), some(2.5e-4, 3.5e-4), 1.17e9),
        HiddenCase("long", "256", some(0.9, 1.1), some(10e-6, 20e-6), some(6e7, 8e7), splits=False),
        HiddenCase("memory", "256", 1.0, some(1e-3, 2e-3), 1.17e9, memory=some(0.9e5, 1.4e5)),
        HiddenCase("budget", "64", 1.0, some(5e-6, 20e-6), 1.17e9, budget=some(3.0e6, 4.5e6)),
        HiddenCase("budget", "256", 1.0, some(5e-6, 20e-6), 1.17e9, budget=some(2.12e7, 2.35e7), splits=False),
    ]


def shuffle_cases(dice: random.Random) -> list[HiddenCase]:
    """Return the eight cases and MORE additional ones in random order, so that no fixed list of answers fits."""
    cases = [*draw_cases(dice), *dice.sample(draw_cases(dice), MORE)]
    dice.shuffle(cases)
    return cases


@cache
def train_strategy(name: str, hidden: str, speed: float, latency: float = 0.0, bandwidth: float = 1e13) -> Trained:
    """Train with a strategy until the target loss is reached, and return the cost. By default the network takes no
    time.
    """
    where = {"hidden": hidden, "device": f"{speed * 1e9:.6g}:1e15:0", "latency": latency, "bandwidth": bandwidth}
    done = run(Experiment.of({**DIGITS, **MENU[name], **where, "learning_rate": BEST[name], "seed": SEED}))
    seconds = arrival(done)
    if math.isinf(seconds):
        return Trained(math.inf, math.inf, math.inf, done.summary["memory"])
    part = seconds / done.summary["seconds"]
    return Trained(seconds, part * done.summary["steps"], part * done.summary["bytes"], done.summary["memory"])


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    named, fits, frugal, *near = POINTS
    cases = shuffle_cases(random.Random(seed))
    with solution.attempt() as attempt:
        chosen = [_choice(attempt, case) for case in cases]
        favourites = [_choice(attempt, case, memory=AMPLE, budget=AMPLE) for case in cases]
        too_large = [_too_large(attempt, *one) for one in zip(cases, favourites, strict=True)]
        halved = [_too_much(attempt, *one) for one in zip(cases, favourites, strict=True)]
    yield named, True, ", ".join(sorted(set(chosen)))
    runs = [case.train(name) for case, name in zip(cases, chosen, strict=True)]
    too_large += [
        f"{name} needs {one.memory:,} bytes, but a worker has {case.memory:,.0f}"
        for case, name, one in zip(cases, chosen, runs, strict=True)
        if one.memory > case.memory
    ]
    over = "; ".join(dict.fromkeys(filter(None, too_large)))
    yield fits, not over, over or "on every cluster"
    too_much = [_exceeded(name, one.sent, case.budget) for case, name, one in zip(cases, chosen, runs, strict=True)]
    over = "; ".join(dict.fromkeys(filter(None, halved + too_much)))
    if all(one is None for one in halved):
        over = over or "judged only when at least one strategy that it names sends something"
    yield frugal, not over, over or "on every cluster"
    for mark, kinds in zip(near, (("fast", "budget"), ("slow",), ("long", "memory")), strict=True):
        mine = [
            (name, _against_the_oracle(case, name, one))
            for case, name, one in zip(cases, chosen, runs, strict=True)
            if case.kind in kinds
        ]
        told = "; ".join(
            f"{name}: {share:.2f} of the oracle's speed" if share else f"{name}: not allowed there"
            for name, share in mine
        )
        asked = f"at least {TARGETS['speed']} is required"
        yield mark, min(share for _, share in mine) >= TARGETS["speed"], f"{told}; {asked}"


def _choice(attempt, case: HiddenCase, needs: dict | None = None, **limits: float) -> str:
    """Return the solution's strategy for this case. Raise SolutionError if it is not one of those offered.

    `limits` replace entries of the cluster, such as its budget, and `needs` replaces entries of the strategies' memory.
    """
    model, cluster = case.arguments()
    name = attempt.call("choose", model | {"memory": model["memory"] | (needs or {})}, cluster | limits)
    if not isinstance(name, str) or name not in MENU:
        raise SolutionError(f"choose returned {str(name)[:60]!r}; it must be one of {', '.join(MENU)}.")
    if name not in case.strategies:
        raise SolutionError(f"choose returned {name!r}; for this model it must be one of model['steps'].")
    return name


def _too_large(attempt, case: HiddenCase, favourite: str) -> str:
    """Return a message if the solution keeps to its `favourite` although it no longer fits into memory, and ""
    otherwise.

    The favourite is the only strategy that does not fit. So a name that happens to fit every case, such as "tensor",
    does not earn the mark for memory.
    """
    most = max(case.arguments()[0]["memory"].values())
    name = _choice(attempt, case, {favourite: 2 * most}, memory=1.5 * most, budget=AMPLE)
    return f"{name} needs {2 * most:,} bytes, but a worker has {1.5 * most:,.0f}" if name == favourite else ""


def _too_much(attempt, case: HiddenCase, favourite: str) -> str | None:
    """Halve the budget of bytes, and return a message if the solution's new choice exceeds it.

    The budget is half of what its `favourite` sends, i.e. its choice without limits. Return "" if the new choice stays
    within the budget, and None if the favourite sends nothing.
    """
    budget = case.train(favourite).sent / 2
    if not budget:
        return None
    name = _choice(attempt, case, memory=AMPLE, budget=budget)
    return _exceeded(name, case.train(name).sent, budget)


def _exceeded(name: str, sent: float, budget: float) -> str:
    allowed = f"sends {sent / 1e6:.1f} MB until it reaches the target loss, but only {budget / 1e6:.1f} MB are allowed"
    return f"{name} {allowed}" if sent > budget else ""


def _against_the_oracle(case: HiddenCase, name: str, one: Trained) -> float:
    """Return the oracle's time divided by the time of this strategy, or 0 if the strategy was not allowed."""
    if not case.is_within_limits(one):
        return 0.0
    others = (case.train(other) for other in case.strategies)
    return min(run.seconds for run in others if case.is_within_limits(run)) / one.seconds
