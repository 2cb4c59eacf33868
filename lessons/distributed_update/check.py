"""Judge the worker of this chapter's exercise by each update, the memory that a rank needs for it, and the cost.

The grader computes Adam's moments from the gradients and, with these, each reported model from the previous one. Which
rank updates which weights is inferred from what passes through the collectives: a rank that is sent only the mean
gradient of its own piece cannot know other moments.
"""

import random
from collections.abc import Callable

import numpy as np

from lessons.distributed_update.exercise import TARGETS
from lessons.figure import run_now
from lessons.grading.accumulated import AccumulatedUpdates
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed

SIZES = 250_000, 350_000  # weights: so many that everything else in a process is small
NEAR = 2e-2  # of the length of an update: where a gradient is nearly zero, rounding may reverse a number's step
POINTS = {
    "every full update is Adam's, with the mean gradient of its whole batch": 3,
    "each rank updates its own piece of the weights, and no other": 4,
    "each rank holds few vectors at once": 3,
    "they send no more than they must": 1,
    "they take no longer than they must": 1,
    "a partial last batch makes an update": 2,
    "it works for any number of ranks and of weights": 2,
    "a mini-batch counts by its samples": 2,
}
OTHERWISE = "judged only when every full update is right"
SHARED = "judged only when each rank updates its own piece of the weights, and no other"
BESIDE = 16  # numbers that a rank may exchange per update, in addition to gradients and weights


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, owned, lean, frugal, quick, last, general, weighed = POINTS
    dice = random.Random(seed)
    one = Training(dice, ranks=6, weights=dice.randint(*SIZES) // 6 * 6 + dice.randint(1, 5), full=dice.randint(4, 5))
    held = Held()
    with solution.ranks(one.ranks) as ranks, held.measure(*ranks):
        done = one.run(ranks, beside=one.textbook)
    wrong = one.wrong()
    yield right, not wrong, wrong or f"{one.full} updates, each of {one.ranks * one.accumulate} mini-batches"
    beside = "" if wrong else one.beside()
    yield (
        owned,
        not wrong and not beside,
        OTHERWISE if wrong else beside or f"{one.ranks} ranks, {one.weights:,} weights",
    )
    few, told = held.check_limit(
        4 * one.weights, TARGETS["memory"], f"{{:.1f}} vectors at once; at most {TARGETS['memory']} are allowed"
    )
    otherwise = OTHERWISE if wrong else SHARED if beside else ""
    yield lean, not otherwise and few, otherwise or told
    for mark, quantity, target in ((frugal, "bytes", "traffic"), (quick, "seconds", "time")):
        part = done.summary[quantity] / one.textbook.summary[quantity]
        told = f"{part:.2f} times what one all-reduce for each update takes; at most {TARGETS[target]} is allowed"
        yield mark, not wrong and part <= TARGETS[target], OTHERWISE if wrong else told
    missed = "" if wrong else one.last_update_error()
    yield last, not wrong and not missed, OTHERWISE if wrong else missed or f"{one.left} mini-batches on each rank"
    yield general, *_any_numbers(solution, dice, otherwise)
    yield weighed, *_unequal_batches(solution, dice, wrong)


def _any_numbers(solution, dice: random.Random, otherwise: str) -> tuple[bool, str]:
    """Return whether updates are right for other numbers of ranks and weights, and what was observed."""
    if otherwise:
        return False, otherwise
    tried = [(1, 10), (2, dice.choice([9, 11])), (5, 3), (7, dice.randint(8, 13)), (3, dice.randint(70, 90))]
    with solution.ranks(max(tried)[0]) as ranks:
        for size, weights in tried:
            small = Training(dice, size, weights, full=3)
            small.run(ranks[:size])
            if told := small.wrong() or small.last_update_error() or small.beside():
                return False, f"{size} ranks, {weights} weights: {told}"
        return True, "; ".join(f"{size} ranks, {weights} weights" for size, weights in tried)
    return False, "it failed there"  # an error of the solution ends its attempts, and is reported


def _unequal_batches(solution, dice: random.Random, wrong: str) -> tuple[bool, str]:
    """Return whether full updates are right if mini-batches differ in size, and what was observed."""
    if wrong:
        return False, OTHERWISE
    uneven = Training(dice, ranks=3, weights=dice.randint(20, 30), full=3, unequal=True)
    with solution.ranks(uneven.ranks) as ranks:
        uneven.run(ranks)
    sizes = uneven.samples[: uneven.accumulate]
    told = uneven.wrong()
    return not told, told or f"3 updates; the mini-batches of the first have {', '.join(map(str, sizes))} samples"


class Training(AccumulatedUpdates):
    """An observed training run, which has `full` full updates and a smaller one at the end."""

    def __init__(self, dice: random.Random, ranks: int, weights: int, full: int, unequal: bool = False):
        self.weights, self.full = weights, full
        accumulate, self.rate = dice.randint(3, 4), dice.uniform(0.01, 0.02)
        self.left = dice.randint(1, accumulate - 1)
        steps = full * accumulate + self.left
        samples = [(1, 9, 4, 30)[step % accumulate] for step in range(steps)] if unequal else [2] * steps
        super().__init__(ranks, steps, accumulate, "weights", samples)
        self.settings = {
            "learning_rate": self.rate, "accumulate": self.accumulate, "eps": 1e-8, "samples": samples,
            "beta1": dice.choice([0.8, 0.85]), "beta2": dice.choice([0.95, 0.98]),
        }  # fmt: skip
        self.values = {
            "algorithm": "accumulation", "accumulate": self.accumulate, "learning_rate": self.rate, "workers": ranks,
            "workload": "quadratic", "dimension": weights, "points": 64, "batch": 2, "noise": 1.0, "condition": 4,
            "network": "1GbE", "evaluations": 1, "steps": self.steps, "seed": experiment_seed(dice),
        }  # fmt: skip
        self.given: dict[tuple[str, int, int], list[np.ndarray]] = {}  # (collective, rank, update) -> what it was given

    @property
    def textbook(self):
        """The Run of a worker that performs one all-reduce per update."""
        if not hasattr(self, "_textbook"):
            self._textbook = run_now(**self.values)
        return self._textbook

    def run(self, attempts, beside=None):
        """Run the training with `attempts`, one per rank, and return the Run."""
        plays = [one.role("worker") for one in attempts]
        return attempts[0].run(
            lambda comm, task, s: plays[comm.rank](*self._between(comm, task)), beside=beside, **self.values
        )

    def wrong(self) -> str:
        """Return a message about the first full update that is wrong, or "" if all are right."""
        return self.count_error(self.full) or next(filter(None, map(self._wrong, range(self.full))), "")

    def last_update_error(self) -> str:
        """Return a message if the last, partial update is missing or wrong, and "" otherwise."""
        return self.leftover_error(self.full) or self._wrong(self.full)

    def beside(self) -> str:
        """Return a message about the first rank that exchanged more than a full update of its piece requires.

        The message may also be about a rank that gathered something else than its piece of the new weights. It is "" if
        no rank did either.
        """
        for t in range(self.full):
            for rank, piece in enumerate(np.array_split(np.arange(self.weights), self.ranks)):
                reduced, scattered, gathered = (
                    self.given.get((what, rank, t), []) for what in ("all_reduce", "reduce_scatter", "all_gather")
                )
                if (numbers := sum(map(len, reduced))) > BESIDE:
                    return f"for update {t + 1} rank {rank} was sent the mean of {numbers} numbers by all_reduce"
                if (numbers := sum(map(len, scattered))) > self.accumulate * self.weights + BESIDE:
                    return f"for update {t + 1} rank {rank} gave {numbers} numbers to reduce_scatter"
                if (numbers := sum(map(len, gathered))) > len(piece) + BESIDE:
                    return f"for update {t + 1} rank {rank} gave {numbers} numbers to all_gather, not {len(piece)}"
                if not self._new(t, piece, gathered):
                    return f"rank {rank} called all_gather for update {t + 1} without its piece of the new weights"
        return ""

    def _new(self, t: int, piece: np.ndarray, gathered: list[np.ndarray]) -> bool:
        """Return whether what a rank gave to all_gather is its piece of the new weights, or of their change."""
        before, after = self.models[t][piece], self.models[t + 1][piece]
        x = np.concatenate([x for x in gathered if len(x) > BESIDE] or [np.empty(0)])
        if len(piece) <= BESIDE:
            return True
        return len(x) == len(piece) and (
            np.allclose(x, after, rtol=1e-5, atol=1e-6) or np.allclose(x, after - before, rtol=1e-2, atol=1e-6)
        )

    def _between(self, comm, task):
        """Return (comm, task, s) for one rank. Calls to comm and task are observed."""

        def observed(what):
            def collective(x, *given):
                if not isinstance(x, np.ndarray) or x.ndim != 1:
                    raise SolutionError(f"{what} takes a vector here; rank {comm.rank} gave it a {type(x).__name__}.")
                update = max(self.counts[comm.rank] - 1, 0) // self.accumulate
                self.given.setdefault((what, comm.rank, update), []).append(x.copy())
                return getattr(comm, what)(x, *given)

            return collective

        collectives = {what: observed(what) for what in ("all_reduce", "reduce_scatter", "all_gather")}
        seen = Restricted("comm", rank=comm.rank, size=comm.size, **collectives)
        return seen, self.task(comm, task), self.settings

    def _wanted(self, t: int, mean: Callable[[int], np.ndarray]) -> np.ndarray:
        """Return the change of the model that update t should make: Adam's step with these mean gradients. Updates are
        counted from 0.
        """
        b1, b2 = self.settings["beta1"], self.settings["beta2"]
        m, v = np.zeros(self.weights), np.zeros(self.weights)
        for update in range(t + 1):
            g = mean(update)
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        return -self.rate * (m / (1 - b1 ** (t + 1))) / (np.sqrt(v / (1 - b2 ** (t + 1))) + self.settings["eps"])

    def _wrong(self, t: int) -> str:
        if behind := self.behind(t):
            return f"{behind} for update {t + 1}"
        for rank in range(self.ranks):
            if len(self.where[rank, t]) > 1 or not np.array_equal(self.where[rank, t][0], self.models[t]):
                return f"rank {rank} computed gradients of update {t + 1} at a model other than the one before it"
        moved = (self.models[t + 1] - self.models[t]).astype("f8")
        wanted = self._wanted(t, self.mean)
        if not self._is_near(moved, wanted):
            if self._is_near(moved, self._wanted(t, self.mean_of_means)):
                return (
                    f"update {t + 1} is Adam's with the mean of the mini-batches' means, in which a mini-batch of "
                    f"{min(self.samples)} counts as much as one of {max(self.samples)} samples"
                )
            pieces = np.array_split(np.abs(moved - wanted), self.ranks)
            worst = max(
                range(self.ranks), key=lambda rank: float(np.nan_to_num(pieces[rank], nan=np.inf).max(initial=0))
            )
            return (
                f"update {t + 1} is not Adam's with the mean of its {self.parts(t)} gradients, most of all in the "
                f"piece of rank {worst}"
            )
        return ""

    @staticmethod
    def _is_near(moved: np.ndarray, wanted: np.ndarray) -> bool:
        return float(np.linalg.norm(moved - wanted)) <= NEAR * float(np.linalg.norm(wanted))
