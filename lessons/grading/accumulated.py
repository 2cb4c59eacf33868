"""Observe updates that accumulate several mini-batches on each rank, on behalf of a check.

A rank's gradients are numbered, so it is known which update each belongs to, whenever it is computed.
"""

from collections.abc import Sequence

import numpy as np

from lessons.grading.grader import SolutionError
from lessons.grading.restricted import Restricted


class AccumulatedUpdates:
    """An observer of `ranks` ranks that accumulate gradients. Each rank processes `steps` mini-batches, `accumulate`
    for each update; the rest make the last update.

    It stores the sums of gradients and the reported models. `called` is the exercise's word for the model's numbers.
    `samples` has the number of samples in each step's mini-batch, which is the same on all ranks. By default all
    mini-batches are equally large.
    """

    def __init__(self, ranks: int, steps: int, accumulate: int, called: str, samples: Sequence[int] = ()):
        self.ranks, self.steps, self.accumulate, self.called = ranks, steps, accumulate, called
        self.samples = samples or [1] * steps
        self.counts = [0] * ranks  # gradients of each rank
        self.sums: dict[int, np.ndarray] = {}  # update -> sum of its gradients, each as often as it has samples
        self.plain: dict[int, np.ndarray] = {}  # update -> sum of its gradients, each once; only if sizes differ
        self.where: dict[tuple[int, int], list[np.ndarray]] = {}  # (rank, update) -> models its gradients are taken at
        self.models: list[np.ndarray] = []

    def task(self, comm, task) -> Restricted:
        """Return the task for the rank of `comm`. Its calls are observed."""
        w = task.start()
        if not self.models:
            self.models.append(w.copy())

        def gradient(w):
            return self._gradient(comm.rank, task, self._vector(w))

        def report(w):
            if comm.rank:
                raise SolutionError(f"rank {comm.rank} called task.report; only rank 0 reports.")
            if len(self.models) > self.steps:
                raise SolutionError(f"rank 0 reported more models than the number of steps, {self.steps}.")
            self.models.append(self._vector(w).copy())
            task.report(w)

        return Restricted(
            "task", per_epoch=task.per_epoch, start=task.start, steps=task.steps, gradient=gradient, report=report
        )

    def parts(self, t: int) -> int:
        """Return how many mini-batches update t should contain, over all ranks. Updates are counted from 0."""
        return self.ranks * min(self.accumulate, self.steps - t * self.accumulate)

    def mean(self, t: int) -> np.ndarray:
        """Return the gradient of update t as a mean over all its samples, (d,)."""
        first = t * self.accumulate
        return self.sums[t] / (self.ranks * sum(self.samples[first : first + self.accumulate]))

    def mean_of_means(self, t: int) -> np.ndarray:
        """Return the mean of the mini-batch gradients of update t, (d,). All have the same weight, whatever their
        numbers of samples.
        """
        return self.plain[t] / self.parts(t) if t in self.plain else self.mean(t)

    def count_error(self, full: int) -> str:
        """Return a message unless there were `full` updates and at most one smaller one, and "" otherwise."""
        made = len(self.models) - 1
        right = full <= made <= full + 1
        return "" if right else f"there were {made} updates; {full} full ones and a smaller one were expected"

    def leftover_error(self, full: int) -> str:
        """Return a message if the mini-batches after `full` updates made no update, and "" if they did."""
        missed = len(self.models) == full + 1
        return f"{self.parts(full)} mini-batches at the end were never used in an update" if missed else ""

    def behind(self, t: int) -> str:
        """Return a message about the first rank with too few gradients for update t, or "" if there is none."""
        wanted = min(self.steps, (t + 1) * self.accumulate)
        few = next(((rank, count) for rank, count in enumerate(self.counts) if count < wanted), None)
        return "rank {} computed {} gradients, which is too few".format(*few) if few else ""

    def _gradient(self, rank: int, task, w: np.ndarray):
        if self.counts[rank] == self.steps:
            raise SolutionError(f"rank {rank} asked for more gradients than it has steps.")
        update, size = self.counts[rank] // self.accumulate, self.samples[self.counts[rank]]
        self.counts[rank] += 1
        at = self.where.setdefault((rank, update), [])
        if not (at and np.array_equal(at[-1], w)):
            at.append(w.copy())
        loss, g = task.gradient(w)
        self._add(self.sums, update, g, size)
        if len({*self.samples}) > 1:
            self._add(self.plain, update, g, 1)
        return loss, g

    @staticmethod
    def _add(sums: dict[int, np.ndarray], update: int, g: np.ndarray, times: int) -> None:
        if update in sums:
            sums[update] += g if times == 1 else times * g.astype("f8")
        else:
            sums[update] = times * g.astype("f8")

    def _vector(self, w) -> np.ndarray:
        d = len(self.models[0])
        if not isinstance(w, np.ndarray) or w.shape != (d,):
            given = f"an array of shape {w.shape}" if isinstance(w, np.ndarray) else f"a {type(w).__name__}"
            raise SolutionError(f"the {self.called} are a vector of {d} numbers; the solution passed {given}.")
        return w.astype(self.models[0].dtype)
