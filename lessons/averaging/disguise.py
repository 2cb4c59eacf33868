"""Disguise: a problem in coordinates that nobody has seen, so that knowing the problem does not help.

    theirs    v = w[order] + shift           what the solution computes with
    ours      w, with gradients g[order] in theirs

The order mixes all weights: of a network that reads images it permutes pixels, neurons and classes, and mixes them.
Whoever knows the images, or a model that reads them, does not know where to write it. Methods that treat every
coordinate alike, as SGD, momentum and means do, take the same steps in either. `anywhere` also draws, coordinate by
coordinate, where to start and where the optimum is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

APART = 5.0, 15.0  # from the start to the optimum, in each coordinate
AWAY = 100.0  # from 0 to the optimum, at most


class Disguise:
    """One disguise, the same for all ranks of a run and of its textbook's; its coordinates are drawn at first use."""

    def __init__(self, seed: int, anywhere: bool = False):
        self.dice, self.anywhere, self.order = np.random.default_rng(seed), anywhere, None

    def start(self, w: np.ndarray) -> np.ndarray:
        """Return where training starts, in their coordinates, if it starts at `w` without a disguise."""
        if self.order is None:
            self.order, self.shift, self.origin = self.dice.permutation(len(w)), w.dtype.type(0), w
            if self.anywhere:
                self.shift = self.dice.uniform(-AWAY, AWAY, len(w)).astype(w.dtype)
                far = self.dice.uniform(*APART, len(w)) * self.dice.choice((-1, 1), len(w))
                self.origin = far.astype(w.dtype)
        return self.origin[self.order] + self.shift

    def ours(self, v: np.ndarray) -> np.ndarray:
        """Return parameters in our coordinates."""
        w = np.empty_like(v)
        w[self.order] = v - self.shift
        return w

    def gradient(self, g: np.ndarray) -> np.ndarray:
        """Return a gradient in their coordinates."""
        return g[self.order]

    def around(self, worker: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        """Return `worker`, a program for ranks, meeting its task in this disguise and returning its last report."""

        def disguised(comm, task, s) -> np.ndarray | None:
            task = DisguisedTask(task, self)
            worker(comm, task, s)
            return task.reported

        return disguised


class DisguisedTask:
    """A task in other coordinates."""

    def __init__(self, task: Any, disguise: Disguise):
        self.task, self.disguise = task, disguise
        self.per_epoch, self.steps, self.measure = task.per_epoch, task.steps, task.measure
        self.at, self.spent, self.reported = task.at, task.spent, None

    def start(self) -> np.ndarray:
        return self.disguise.start(self.task.start())

    def gradient(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        loss, g = self.task.gradient(self.disguise.ours(v))
        return loss, self.disguise.gradient(g)

    def report(self, v: np.ndarray) -> None:
        self.reported = self.disguise.ours(v)
        self.task.report(self.reported)
