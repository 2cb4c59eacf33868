"""Judge the weights of this chapter's exercise, and recognise known mistakes by the weights they lead to."""

import random
from typing import NamedTuple

import numpy as np

from lessons.grading.grader import SolutionError
from lessons.pipelined_backprop.exercise import TARGETS

POINTS = {
    "stages that wait, and a single stage, train like SGD": 2,
    "with a stash, each stage is as late as the order requires": 5,
    "without a stash, errors go back through the newest weights": 5,
    "it is right while the pipeline fills, too": 3,
    "each stage has its own rate": 2,
}
TOLD_APART = 1e-7  # how far a mistake's weights have to be from the right ones


class Chain(NamedTuple):
    """The arguments of `train`."""

    w: list[float]
    xs: list[float]
    rate: float
    hops: int
    stash: bool
    divided: bool

    @property
    def description(self) -> str:
        order = {0: "stages wait", 1: "1F1B", 2: "the order of 1993"}[self.hops]
        kept = "with" if self.stash else "without"
        return f"{len(self.w)} stages, {len(self.xs)} mini-batches, {order}, {kept} a stash"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    dice = random.Random(seed)

    def case(hops, stash, divided=False, stages=None, batches=None):
        stages = stages or dice.randint(3, 6)
        w, xs = ([dice.uniform(low, high) for _ in range(n)] for low, high, n in
                 ((0.7, 1.1, stages), (0.6, 1.4, batches or dice.randint(15, 25))))  # fmt: skip
        return Chain(w, xs, dice.uniform(0.03, 0.06), hops, stash, divided)

    few = dice.randint(4, 6)
    cases = dict(
        zip(
            POINTS,
            (
                [case(0, False), case(2, False, stages=1)],
                [case(1, True), case(2, True)],
                [case(1, False), case(2, False)],
                [case(2, True, stages=few, batches=few - 1), case(2, False, stages=few, batches=few + 1)],
                [case(2, False, True), case(1, True, True)],
            ),
            strict=True,
        )
    )
    with solution.attempt() as attempt:
        for mark, some in cases.items():
            found = [(one, _weights(attempt, one)) for one in some]
            wrong = [(one, w) for one, w in found if _far(w, weights(one)) > TARGETS["difference"]]
            yield mark, not wrong, _told(*wrong[0]) if wrong else "; ".join(one.description for one in some)


def weights(case: Chain, late=None, back="", hasty=False) -> list[float]:
    """Return the correct weights after the last update. With `late`, `back` or `hasty`, return those that a known
    mistake leads to.
    """
    stages = len(case.w)
    due = [case.hops * (stages - 1 - s) for s in range(stages)]
    late, back = due if late is None else late, back or ("met" if case.stash else "newest")
    versions = [[w] for w in case.w]
    for batch, x in enumerate(case.xs):
        met = [mine[max(0, batch - late[s])] for s, mine in enumerate(versions)]
        inputs = []
        for w in met:
            inputs.append(x)
            x = w * x
        error = x - 1
        for s in reversed(range(stages)):
            w, mine = met[s] if back == "met" else versions[s][-1], versions[s]
            mine.append(mine[-1] - case.rate / (due[s] + 1 if case.divided else 1) * error * inputs[s])
            error = error * (mine[-1] if hasty else w)
    return [mine[-1] for mine in versions]


def _weights(attempt, case: Chain) -> list[float]:
    """Return the solution's weights for a case. Raise SolutionError unless there is one number per stage."""
    found = attempt.call("train", *case)
    try:
        found = np.asarray(found, float)
    except (TypeError, ValueError):
        found = np.zeros(())
    if found.shape != (len(case.w),):
        raise SolutionError(f"train must return {len(case.w)} numbers for {len(case.w)} stages, in a list.")
    return found.tolist()


def _told(case: Chain, found: list[float]) -> str:
    """Return a message that says which mistake leads to these weights, or how far they are from the right ones."""
    right, last = weights(case), len(case.w) - 1
    mistakes = {
        "those of stages that wait: no forward is late": {"late": [0] * (last + 1)},
        "those of a pipeline in which all stages are as late as the first": {"late": [case.hops * last] * (last + 1)},
        "those of a pipeline in which the last stage has the longest delay": {
            "late": [case.hops * s for s in range(last + 1)]
        },
        "those of a delay that is one update too long": {"late": [case.hops * (last - s) + 1 for s in range(last + 1)]},
        "those of the other order": {"late": [(3 - case.hops) * (last - s) for s in range(last + 1)]},
        "those without a stash: errors go back through the newest weights": {"back": "newest"},
        "those with a stash: errors go back through the weights of the forward": {"back": "met"},
        "those of errors that go back through weights already changed by the same mini-batch": {"hasty": True},
        "those of one rate for all stages": {"alike": True},
    }
    for told, how in mistakes.items():
        one = case._replace(divided=False) if how.pop("alike", False) else case
        wrong = weights(one, **how)
        if _far(found, wrong) <= TARGETS["difference"] and _far(wrong, right) > TOLD_APART:
            return f"{case.description}: the weights are {told}"
    return f"{case.description}: a weight is {_far(found, right):.2g} off; {TARGETS['difference']:g} is allowed"


def _far(found: list[float], wanted: list[float]) -> float:
    far = np.abs(np.subtract(found, wanted)).max()
    return float(far) if np.isfinite(far) else float("inf")
