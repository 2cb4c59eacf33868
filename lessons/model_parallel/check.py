"""Judge the worker of this chapter's exercise: what each rank holds, returns and sends, and how long it takes.

The grader has the layers around the block, and trains a copy of the block as one rank would. Everything that a rank
hands over is compared with this copy, so a solution's own claims do not count. A rank is charged for the numbers it has
requested.
"""

from __future__ import annotations

import random
from math import inf

import numpy as np

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from kernels import METER
from lessons.grading.grader import SolutionError
from lessons.grading.restricted import Restricted
from lessons.model_parallel.exercise import TARGETS
from lessons.model_parallel.solution import worker as textbook
from tracing import COMPUTE

POINTS = {
    "every rank hands over the results of the whole block": 4,
    "a rank holds its part, and no more": 4,
    "one all-reduce in the forward pass": 3,
    "one all-reduce in the backward pass": 3,
    "ranks send no more than they must": 2,
    "it takes no longer than it must": 2,
    "it works where units do not divide evenly, and on one rank": 2,
}
CLOSE = 1e-3  # share of the largest number compared; share of the largest change of a weight in a step
KINK = 1e-4  # no input of relu is closer to 0
STEPS = 5
PASSES = {"forward": "forward", "back": "backward"}  # by phase
PARTLY = "judged only when every rank holds its part, and trains it correctly"
OTHERWISE = "judged only when every rank hands over what it should, and holds its part"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    right, held, forward, back, frugal, quick, general = POINTS
    dice = random.Random(seed)
    ranks = dice.choice([3, 4])
    samples, width = dice.randint(60, 80), dice.randint(56, 72)
    units = ranks * dice.randint(90, 110)
    ours = BlockLedger(ranks, samples, width, units, seed)
    best = ours.play([textbook] * ranks)
    with solution.ranks(ranks) as attempts:
        theirs = BlockLedger(ranks, samples, width, units, seed)
        done = theirs.play([one.role("worker") for one in attempts], attempts[0], beside=best)
    wrong, untrained = theirs.missing(), theirs.training_error()
    yield right, not wrong, wrong or f"{ranks} ranks, {STEPS} steps of {samples} samples"
    share = theirs.peak_memory() / (2 * width * units / ranks)
    told = f"the fullest rank holds {share:.2f} times an equal share; at most {TARGETS['held']} is allowed"
    holds = not untrained and share <= TARGETS["held"]
    yield held, holds, untrained or told
    for mark, phase in ((forward, "forward"), (back, "back")):
        said = theirs.wrong.get(phase) or theirs.exchanges(phase)
        yield mark, holds and not said, (said or "one in each step") if holds else PARTLY
    part = holds and not wrong
    for mark, quantity, target in ((frugal, "bytes", "traffic"), (quick, "seconds", "time")):
        times = done.summary[quantity] / best.summary[quantity] if part else inf
        told = f"{times:.2f} times the {quantity} of the textbook's block; at most {TARGETS[target]} is allowed"
        yield mark, times <= TARGETS[target], told if part else OTHERWISE
    tried = [(1, 7, 5, 9), (3, 11, 6, 8), (5, 4, 9, dice.randint(26, 29))]  # ranks, samples, width, units
    with solution.ranks(5) as attempts:
        for number, shape in enumerate(tried, 1):
            ledger = BlockLedger(*shape, seed + number)
            ledger.play([one.role("worker") for one in attempts[: shape[0]]], attempts[0])
            said = ledger.missing() or ledger.uneven_rank()
            if said:
                break
        told = "; ".join(f"{shape[3]} units on {shape[0]}" for shape in tried)
        yield general, part and not said, (f"{shape[3]} units on {shape[0]}: {said}" if said else told)


class BlockLedger:
    """A block of two layers, trained as a single rank would train it. What each of `ranks` ranks does is compared with
    it.
    """

    def __init__(self, ranks: int, samples: int, width: int, units: int, seed: int):
        self.ranks, self.samples, self.width, self.units = ranks, samples, width, units
        self.dice, self.rate = np.random.default_rng(seed), 2 / units  # a rate at which it learns
        self.wrong: dict[str, str] = {}  # "forward", "back" or "weights" -> the first mistake in what a rank passed on
        u, v = self.dice.normal(size=(width, units)), self.dice.normal(size=(units, width))
        self.steps = [WholeStep(np.concatenate([(u / width**0.5).ravel(), (v / units**0.5).ravel()]), self)]
        self.sides: dict[int, BlockSide] = {}

    def play(self, plays, attempt=None, beside=None):
        """Run the block with `plays[r]` as the worker of rank r, in the sandbox of `attempt` if given. Record each
        rank's mistakes and return the Run.
        """
        given, final = {"width": self.width, "units": self.units, "learning_rate": self.rate}, {}
        values = {
            "algorithm": "sync_sgd", "workload": "quadratic", "dimension": 2, "points": 64, "batch": 1, "steps": STEPS,
            "evaluations": 1, "network": "10GbE", "learning_rate": 0.1, "workers": self.ranks,
        }  # fmt: skip

        def worker(comm, task, s):
            side = self.sides[comm.rank] = BlockSide(self, comm, task)
            settings = given if attempt else Restricted("s", **given)
            final[comm.rank] = plays[comm.rank](side.comm(), side.task(), settings)

        done = (
            attempt.run(worker, beside=beside, **values)
            if attempt
            else run(Experiment.of(values), worker_override=worker)
        )
        for rank, side in self.sides.items():
            side.compare_weights(final.get(rank), "returned")
        return done

    def missing(self) -> str:
        """Return the first mistake in what ranks handed over, returned or trained; "" if there is none."""
        return next(iter(self.wrong.values()), "") or self.training_error()

    def training_error(self) -> str:
        """Return a message about numbers that are not trained, or trained wrongly; "" if all are right."""
        if "weights" in self.wrong:
            return self.wrong["weights"]
        for rank in range(self.ranks):
            if self.sides[rank].done < STEPS:
                return f"rank {rank} made {self.sides[rank].done} of {STEPS} steps"
        held = np.concatenate([side.places for side in self.sides.values()])
        if len(np.unique(held)) < 2 * self.width * self.units:
            return f"no rank holds number {np.setdiff1d(np.arange(2 * self.width * self.units), held)[0]}"
        return ""

    def peak_memory(self) -> int:
        """Return how many numbers the fullest rank holds."""
        return max(len(side.places) for side in self.sides.values())

    def uneven_rank(self) -> str:
        """Return a message if the fullest rank holds more than it must; else "". Units may not divide evenly."""
        most = 2 * self.width * -(-self.units // self.ranks)
        if self.peak_memory() > most:
            return f"the fullest rank holds {self.peak_memory()} numbers; {most} are enough"
        return ""

    def exchanges(self, phase: str) -> str:
        """Return a message about the first rank that did not call exactly one all-reduce in a pass; "" if all did."""
        for rank, side in sorted(self.sides.items()):
            for step, spoken in enumerate(side.spoken):
                if spoken[phase] != ["all_reduce"]:
                    said = ", ".join(spoken[phase]) or "nothing"
                    where = f"in step {step}, in the {PASSES[phase]} pass, rank {rank}"
                    return f"{where} called {said}; expected exactly one all_reduce"
        return ""

    def at(self, number: int) -> WholeStep:
        """Return step `number` as a single rank would take it."""
        while len(self.steps) <= number:
            self.steps.append(WholeStep(self.steps[-1].after, self))
        return self.steps[number]


class WholeStep:
    """One step of the whole block, in double precision: the weights before and after it, and all values in between."""

    def __init__(self, w: np.ndarray, block: BlockLedger):
        half, samples = w.size // 2, block.samples
        self.w, u, v = w, w[:half].reshape(block.width, -1), w[half:].reshape(-1, block.width)
        self.x = np.zeros((samples, block.width))
        while len(near := np.flatnonzero(np.abs(self.x @ u).min(axis=1) < KINK)):  # the last bit would decide there
            self.x[near] = block.dice.normal(size=(len(near), block.width)).astype(np.float32)
        y = np.maximum(self.x @ u, 0)
        self.z = y @ v
        self.dz = (self.z - block.dice.normal(size=self.z.shape)) / samples
        dy = self.dz @ v.T * (y > 0)
        self.dx = dy @ u.T
        self.after = w - block.rate * np.concatenate([(self.x.T @ dy).ravel(), (y.T @ self.dz).ravel()])


class BlockSide:
    """The block as one rank sees it; records what the rank requests, returns and exchanges."""

    ORDER = "forward", "classify", "backward", "report"

    def __init__(self, block: BlockLedger, comm, task):
        self._block, self._comm, self._task = block, comm, task
        self.places = np.array([], int)
        self.done, self._next, self._asked = 0, 0, False
        self.spoken: list[dict[str, list[str]]] = []  # by step: collectives on the way forward, and on the way back

    def comm(self):
        """Return the comm that the worker gets."""
        parts = {"all_reduce": self._all_reduce, "all_gather": self._all_gather}
        return Restricted("comm", rank=self._comm.rank, size=self._comm.size, **parts)

    def task(self):
        """Return the task that the worker gets."""
        parts = {name: getattr(self, f"_{name}") for name in self.ORDER}
        return Restricted("task", per_epoch=self._task.per_epoch, start=self._start, steps=self._task.steps, **parts)

    def now(self) -> np.ndarray:
        """Return the weights that this rank should hold now, in double precision."""
        return self._block.at(self.done).w[self.places]

    def compare_weights(self, w, did: str) -> None:
        """Compare w with the whole block's weights, relative to their change in the last step, and record a mistake.
        `did` is what the rank did with w, such as "reported".
        """
        before = self._block.at(max(0, self.done - 1)).w[self.places]
        size = np.abs(self.now() - before).max(initial=0) if self.done else None
        self.compare("weights", w, self.now(), f"{did} a w", size)

    def compare(self, kind: str, found, wanted, what: str, size: float | None = None) -> None:
        """Record a mistake if `found` differs from `wanted` by more than CLOSE times `size`. Only the first of each
        kind is kept.

        `size` defaults to the largest number in `wanted`. Raise SolutionError if `found` has the wrong type or shape.
        """
        if not isinstance(found, np.ndarray) or found.shape != wanted.shape or found.dtype.kind != "f":
            shape = f"of shape {found.shape}" if isinstance(found, np.ndarray) else f"that is a {type(found).__name__}"
            raise SolutionError(f"rank {self._comm.rank} {what} {shape}; expected floats of shape {wanted.shape}.")
        away = np.abs(found - wanted).max(initial=0)
        size = np.abs(wanted).max(initial=0) if size is None else size
        if not away <= CLOSE * size:
            words = f"in step {self.done} rank {self._comm.rank} {what} that is up to {away:.2g} away from what"
            self._block.wrong.setdefault(kind, f"{words} the whole block gives")

    def _start(self, places=None):
        total = 2 * self._block.width * self._block.units
        if places is None and self._asked:
            return self.now()
        if self._asked:
            raise SolutionError(f"rank {self._comm.rank} called task.start(places) twice; ask for all numbers at once.")
        if not isinstance(places, np.ndarray) or places.dtype.kind not in "iu" or places.ndim != 1:
            raise SolutionError("task.start takes the indices of the numbers, a vector of integers.")
        if len(places) and (places.min() < 0 or places.max() >= total or len(np.unique(places)) < len(places)):
            raise SolutionError(f"the indices given to task.start must be distinct, and from 0 to {total - 1}.")
        self.places, self._asked = places.astype(int), True
        return self.now().astype(np.float32)

    def _forward(self, w):
        self._comes("forward")
        self.compare_weights(w, "called task.forward with")
        self.spoken.append({"forward": [], "back": []})
        self._charge("F", 1)
        return self._block.at(self.done).x.astype(np.float32)

    def _classify(self, z):
        self._comes("classify")
        step = self._block.at(self.done)
        self.compare("forward", z, step.z, "handed over a z")
        self._charge("B", 2)
        return step.dz.astype(np.float32)

    def _backward(self, w, dx):
        self._comes("backward")
        self.compare_weights(w, "called task.backward with")
        self.compare("back", dx, self._block.at(self.done).dx, "handed over a dx")

    def _report(self, w):
        self._comes("report")
        self.done += 1
        self.compare_weights(w, "reported")

    def _comes(self, what: str):
        expected = self.ORDER[self._next]
        if what != expected:
            raise SolutionError(f"rank {self._comm.rank} called task.{what}; expected task.{expected} next.")
        self._next = (self._next + 1) % len(self.ORDER)

    def _charge(self, label: str, passes: int):
        """Advance the clock by the time of this rank's matrix products."""
        with self._comm.event_log.doing(COMPUTE, label):
            METER.get().charge("matmul", 2 * passes * self._block.samples * len(self.places), 0)

    def _all_reduce(self, x, op="sum", *rest):
        self._speaks("all_reduce")
        return self._comm.all_reduce(x, op, *rest)

    def _all_gather(self, x):
        self._speaks("all_gather")
        return self._comm.all_gather(x)

    def _speaks(self, what: str):
        if not self.spoken:
            raise SolutionError(f"rank {self._comm.rank} called a collective before the first task.forward.")
        self.spoken[-1]["forward" if self._next == 1 else "back"].append(what)
