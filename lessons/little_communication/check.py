"""Judge the worker of this chapter's exercise: the model that rank 0 reports, and the cost.

Every run is made twice, by the textbook's streaming DiLoCo and by the solution, with the same gradients, so the two
models must be equal. Sizes, periods and speeds are random.
"""

import random

import numpy as np

from algorithms.averaging import streaming_diloco
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.seeds import experiment_seed
from lessons.little_communication.exercise import TARGETS

POINTS = {
    "with one part it is DiLoCo": 1,
    "every part has its outer step at the end of its turn": 4,
    "nobody waits for a part on its way": 3,
    "a worker keeps its share of its own part": 2,
    "what is left at the end is averaged": 2,
    "no message is longer than a part": 1,
}
OTHERWISE = "judged only when every part has its outer step"
SPEED = 1e9  # FLOP/s: a step takes a millisecond or less


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    whole, turns, overlapped, share, rest, short = POINTS
    dice = random.Random(seed)
    workers, parts = dice.randint(3, 4), dice.choice((2, 4))
    turn = dice.randint(4, 6)
    values = {
        "algorithm": "streaming_diloco", "workload": "quadratic", "noise": 1.0, "condition": 10, "points": 512,
        "dimension": 4 * dice.randint(400, 600), "batch": 32, "precision": "float64", "evaluations": 1,
        "workers": workers, "learning_rate": dice.uniform(0.1, 0.2), "outer_rate": dice.uniform(0.5, 0.8),
        "outer_momentum": dice.uniform(0.3, 0.7), "own_share": 0.0, "overlap": 0, "fragments": parts, "update": "sgd",
        "period": parts * turn, "steps": 3 * parts * turn, "network": "ideal", "collective": "ring",
        "seed": experiment_seed(dice),
    }  # fmt: skip
    with solution.ranks(workers) as ranks:
        done = RunPair(ranks, **{**values, "fragments": 1, "period": turn, "steps": 3 * turn})
        yield whole, *done.equal(3)
        done = RunPair(ranks, **values)
        right, told = done.equal(3 * parts)
        yield turns, right, told
        travelling = {**values, "overlap": turn - 1, **_line(values, turn)}
        done = RunPair(ranks, **travelling)
        kept, apart = done.equal(3 * parts)
        took, longest = done.ratio(_seconds), done.ratio(_longest)
        told = f"{took:.2f} times the textbook worker's time; at most {TARGETS['time']} is allowed"
        yield overlapped, right and kept and took <= TARGETS["time"], (told if kept else apart) if right else OTHERWISE
        done = RunPair(ranks, **{**travelling, "own_share": dice.uniform(0.3, 0.7)})
        yield share, *(done.equal(3 * parts) if right else (False, OTHERWISE))
        done = RunPair(ranks, **{**travelling, "steps": values["steps"] + turn + dice.randint(1, turn - 1)})
        yield rest, *(done.equal(None) if right else (False, OTHERWISE))
        told = f"its longest message is {longest:.2f} times the textbook's; at most {TARGETS['message']} is allowed"
        yield short, right and longest <= TARGETS["message"], told if right else OTHERWISE


def _line(values, turn):
    """Return device and network settings for which sending one part takes about half as long as the part's turn."""
    step = run_now(**{**values, "device": f"{SPEED:g}:1e15:0", "steps": 10}).summary["seconds"] / 10
    part = 8 * values["dimension"] / values["fragments"]
    return {"device": f"{SPEED:g}:1e15:0", "network": f"0:{2 * part / (step * turn / 2):g}:0"}


def _seconds(run):
    return run.summary["seconds"]


def _longest(run):
    """Return the size of the longest message, in bytes."""
    return int(run.trace.messages["bytes"].max())


class RunPair:
    """Two runs of the same training, one with the textbook's worker and one with the solution's, and the models that
    rank 0 reported in each.
    """

    def __init__(self, ranks, **values):
        roles = [attempt.role("worker") for attempt in ranks]
        self._reported: list[list] = [[], []]  # by the textbook's rank 0; by the solution's

        def textbook(comm, task, s):
            return streaming_diloco.worker(comm, ReportProbe(task, self._reported[0] if comm.rank == 0 else []), s)

        def worker(comm, task, s):
            return roles[comm.rank](comm, ReportProbe(task, self._reported[1] if comm.rank == 0 else []), s)

        self._textbook = run(Experiment.of(values), worker_override=textbook)
        self._done = ranks[0].run(worker, beside=self._textbook, **values)
        if self._done.parameters is None:
            raise SolutionError(self._done.error or "no rank has reported a model; rank 0 must call task.report(x).")

    def ratio(self, quantity):
        """Return quantity(solution's run) divided by quantity(textbook's run)."""
        return quantity(self._done) / quantity(self._textbook)

    def equal(self, reports):
        """Compare the first `reports` models of both runs, or all if it is None. Return (whether they are equal, a
        message on how far apart they are).
        """
        right, made = (some[:reports] for some in self._reported)
        if len(made) != len(right):
            return False, f"rank 0 reported {len(made)} models; the textbook's rank 0 reported {len(right)}"
        apart = max(float(np.abs(a - b).max()) for a, b in zip(made, right, strict=True)) / float(
            np.abs(right[-1]).max()
        )
        return apart <= TARGETS[
            "apart"
        ], f"its model is up to {apart:.2g} away from the textbook's, relative to its size"


class ReportProbe:
    """A proxy for a task that keeps a copy of each reported model."""

    def __init__(self, task, made):
        self.task, self._made = task, made
        self.per_epoch, self.start, self.steps, self.gradient = task.per_epoch, task.start, task.steps, task.gradient
        self.measure, self.at, self.spent = task.measure, task.at, task.spent
        self.layers, self._shape = task.layers, task.start().shape

    def report(self, x):
        x = np.asarray(x, float)
        if x.shape != self._shape:
            raise SolutionError(f"rank 0 reported a model of shape {x.shape}; expected {self._shape}.")
        self._made.append(x.copy())
        self.task.report(x)
