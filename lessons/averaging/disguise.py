"""A problem in unknown coordinates, so that knowing the problem does not help.

    theirs    v = T w + shift                what the solution computes with
    ours      w, with gradients T g in theirs

T mixes all weights, and rotates pairs of them by random angles, TURNS times: each of their numbers depends on four of
ours. In a network that reads images this mixes pixels, neurons and classes, and hides the initial weights: none of the
original numbers is visible. Knowing the images, or a model that reads them, does not help, since the disguised
coordinates are unknown. Methods that treat every direction alike, such as SGD, momentum and averaging, take the same
steps in both coordinates. `anywhere` also draws the start and the optimum at random, coordinate by coordinate.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

TURNS = 2
APART = 5.0, 15.0  # from the start to the optimum, in each coordinate
AWAY = 100.0  # from 0 to the optimum, at most


class Disguise:
    """A random change of coordinates, shared by all ranks of a run and by the textbook's run. It is drawn at its first
    use.
    """

    def __init__(self, seed: int, anywhere: bool = False):
        self.dice, self.anywhere, self.turns = np.random.default_rng(seed), anywhere, None

    def start(self, w: np.ndarray) -> np.ndarray:
        """Return where training starts, in the disguised coordinates, (d,). An undisguised run starts at `w`. The first
        call draws the disguise.
        """
        if self.turns is None:
            self.turns, self.shift, self.origin = self._drawn_turns(w), w.dtype.type(0), w
            if self.anywhere:
                self.shift = self.dice.uniform(-AWAY, AWAY, len(w)).astype(w.dtype)
                far = self.dice.uniform(*APART, len(w)) * self.dice.choice((-1, 1), len(w))
                self.origin = far.astype(w.dtype)
        return self.gradient(self.origin) + self.shift

    def ours(self, v: np.ndarray) -> np.ndarray:
        """Return the disguised parameters `v` in the original coordinates, (d,)."""
        v = v - self.shift
        for order, cos, sin in reversed(self.turns):
            w = np.empty_like(v)
            w[order] = _turned(v, cos, -sin)
            v = w
        return v

    def gradient(self, g: np.ndarray) -> np.ndarray:
        for order, cos, sin in self.turns:
            g = _turned(g[order], cos, sin)
        return g

    def _drawn_turns(self, w: np.ndarray) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Draw TURNS rotations of pairs, and return each as (order, cosines, sines). A pair has one number from each
        half of the vector.
        """
        angles = (self.dice.uniform(0, 2 * np.pi, len(w) // 2) for _ in range(TURNS))
        return [
            (self.dice.permutation(len(w)), np.cos(angle).astype(w.dtype), np.sin(angle).astype(w.dtype))
            for angle in angles
        ]

    def around(self, worker: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        """Return a program for ranks that runs `worker` on the disguised task and returns the last model it
        reported.
        """

        def disguised(comm, task, s) -> np.ndarray | None:
            task = DisguisedTask(task, self)
            worker(comm, task, s)
            return task.reported

        return disguised


def _turned(x: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    a, b, rest = np.split(x, (len(cos), 2 * len(cos)))
    return np.concatenate([cos * a - sin * b, sin * a + cos * b, rest])


class DisguisedTask:
    def __init__(self, task: Any, disguise: Disguise):
        self.task, self.disguise = task, disguise
        self.per_epoch, self.steps, self.measure = task.per_epoch, task.steps, task.measure
        self.at, self.spent, self.is_usable, self.reported = task.at, task.spent, task.is_usable, None

    def start(self) -> np.ndarray:
        return self.disguise.start(self.task.start())

    def gradient(self, v: np.ndarray) -> tuple[float, np.ndarray]:
        loss, g = self.task.gradient(self.disguise.ours(v))
        return loss, self.disguise.gradient(g)

    def report(self, v: np.ndarray) -> None:
        self.reported = self.disguise.ours(v)
        self.task.report(self.reported)
