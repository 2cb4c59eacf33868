"""Judge the step of this chapter's exercise by what it reaches in valleys and in noise, and by its memory."""

import random
from math import inf, sqrt

import numpy as np

from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.seeds import unguessable
from lessons.sgd.exercise import TARGETS

POINTS = {
    "down valleys it needs hardly more gradients than heavy ball": 4,
    "in noise it ships as good a model as averaged SGD": 4,
    "in noise it does as well from a start far away": 3,
    "it remembers few vectors": 2,
}
LOWER = 1e-6  # of the loss at the start
PATIENCE = 4  # times the gradients of heavy ball, after which a valley is given up
NOISY = 1000  # gradients
BURN_IN = 300  # steps of SGD before averaging begins
FAR = 1000  # times as far away
NUMBERS = 20  # numbers that may be remembered in addition to vectors
ASKED_AGAIN = 0.05  # share of steps repeated by a process that has not seen the others
GROWTH = 500  # most growth of a process, kB
OTHERWISE = "judged only when it ships as good a model in noise as averaged SGD"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    down, noisy, distant, lean = POINTS
    dice = random.Random(seed)
    held = Held()
    with solution.ranks(3) as ranks, held.measure(*ranks):  # processes, so that only what a step returns is remembered
        steps = Steps(ranks[:2], ranks[2], dice)
        worst, there = 0.0, 0.0
        for condition in dice.sample(range(75, 101), 3):
            valley = Bowl(unguessable(dice), condition)
            needed = steps.until(valley, PATIENCE * valley.heavy_ball())
            worst, there = max(worst, needed / valley.heavy_ball()), max(there, steps.arrived / valley.heavy_ball())
        told = f"{worst:.2f}" if worst < inf else f"never, or more than {PATIENCE}"
        told += " times as many gradients as heavy ball"
        if there <= TARGETS["valley"] < worst:
            told += f" for the model you ship ({there:.2f} times as many for the weights at which you take gradients)"
        yield down, worst <= TARGETS["valley"], f"{told}; at most {TARGETS['valley']} is allowed"
        settled = False  # in noise, which requires a mean of models, and so memory
        for mark, far in ((noisy, 1), (distant, FAR)):
            bowl = Bowl(unguessable(dice), dice.randint(15, 25), dice.uniform(0.5, 2), far)
            part = steps.loss(bowl, NOISY) / bowl.loss_of_average(NOISY)
            told = f"{part:.2f} times the loss of averaged SGD" if part < inf else "it diverged"
            settled |= part <= TARGETS["noise"]
            yield mark, part <= TARGETS["noise"], f"{told}; at most {TARGETS['noise']} is allowed"
    few = steps.vectors <= TARGETS["memory"] + NUMBERS / steps.least
    limit = f"{TARGETS['memory']} vectors and {NUMBERS} numbers"
    told = f"{steps.vectors:.2f} vectors are remembered, single numbers included; at most {limit} are allowed"
    little, grown = held.check_limit(
        1000, GROWTH, f"the solution's process grew by {{:.0f}} kB; at most {GROWTH} kB is allowed"
    )
    if not settled:
        yield lean, False, steps.hidden or OTHERWISE
    else:
        said = told if not few else grown if not little else steps.hidden or told
        yield lean, few and little and not steps.hidden, said


class Bowl:
    """A quadratic with a random rotation and optimum. The solution sees only its gradients.

    The largest curvature is 1 and the smallest 1 / condition. Along an axis of curvature h, a gradient has noise of
    standard deviation h times `noise`, and the distance from the optimum to the start has standard deviation `away`.
    """

    def __init__(self, seed: int, condition: float, noise: float = 0.0, away: float = 1.0):
        self.seed, self.condition, self.noise = seed, condition, noise
        dice = np.random.default_rng(seed)
        size = int(dice.integers(60, 101))
        self.curvature = np.geomspace(1, 1 / condition, size)
        self.rotation = np.linalg.qr(dice.standard_normal((size, size)))[0]
        self.optimum = 100 * dice.standard_normal(size)
        self.start = self.optimum + self.rotation @ (away * dice.standard_normal(size))

    def gradients(self):
        """Return a function that returns the next gradient at w; its noise is the same in every descent."""
        dice = np.random.default_rng(self.seed + 1)

        def gradient(w):
            away = self.rotation.T @ (w - self.optimum)
            return self.rotation @ (self.curvature * (away + self.noise * dice.standard_normal(len(w))))

        return gradient

    def loss(self, w) -> float:
        """Return how far the loss at w is above the loss at the optimum."""
        return float(self.curvature @ np.square(self.rotation.T @ (w - self.optimum)) / 2)

    def heavy_ball(self) -> int:
        """Return how many gradients heavy ball needs on this bowl with the best learning rate and momentum."""
        root = sqrt(1 / self.condition)
        rate, momentum = 4 / (1 + root) ** 2, ((1 - root) / (1 + root)) ** 2
        w, v, gradient, taken = self.start.copy(), 0.0, self.gradients(), 0
        while self.loss(w) > LOWER * self.loss(self.start):
            v = momentum * v + gradient(w)
            w = w - rate * v
            taken += 1
        return taken

    def loss_of_average(self, steps: int) -> float:
        """Return the loss of the mean of SGD's models after burn-in, at a learning rate of 1."""
        w, mean, gradient = self.start.copy(), 0.0, self.gradients()
        for taken in range(steps):
            w = w - gradient(w)
            if taken >= BURN_IN:
                mean = mean + (w - mean) / (taken - BURN_IN + 1)
        return self.loss(mean)


class Steps:
    """The solution's step, called in two processes alternately, and sometimes repeated in a third.

    The third process has seen few of the earlier steps. It repeats some steps, chosen at random, and those whose model
    is judged. `hidden` says where its result differed, or is "". Steps also records the largest memory, and how many
    gradients the weights needed in the last valley.
    """

    def __init__(self, turns, third, dice: random.Random):
        self.turns, self.third, self.dice = turns, third, dice
        self.vectors, self.least, self.arrived, self.hidden = 0.0, inf, inf, ""

    def until(self, bowl: Bowl, most: int) -> float:
        """Return how many gradients it takes to reduce the shipped model's loss to a millionth. The number is infinite
        if it is more than `most`. Record in `arrived` how many it takes for the weights.
        """
        self.arrived = inf
        for taken, (w, model) in enumerate(self._models(bowl, most), 1):
            if bowl.loss(w) <= LOWER * bowl.loss(bowl.start):
                self.arrived = min(self.arrived, taken)
            if bowl.loss(model) <= LOWER * bowl.loss(bowl.start):
                self._ask_again()
                return taken
        return inf

    def loss(self, bowl: Bowl, gradients: int) -> float:
        """Return the loss of the shipped model after this many gradients; infinite if it diverges."""
        model = None
        for _, model in self._models(bowl, gradients):
            if not np.isfinite(model).all():
                return inf
        self._ask_again()
        found = bowl.loss(model)
        return found if np.isfinite(found) else inf

    def _models(self, bowl: Bowl, gradients: int):
        """Yield (weights, shipped model) after each gradient; stop when weights are no longer finite."""
        w, memory, gradient = bowl.start, [], bowl.gradients()
        self.least = min(self.least, len(w))
        for taken in range(gradients):
            given = w, gradient(w), memory
            w, model, memory = self._step(self.turns[taken % len(self.turns)], *given)
            self._last = taken, given, (w, model)
            if self.dice.random() < ASKED_AGAIN:
                self._ask_again()
            yield w, model
            if not np.abs(w).max() < 1e100:
                yield w, np.full(len(w), inf)
                return

    def _ask_again(self) -> None:
        """Repeat the last step in the third process, and record whether it differs."""
        if self.hidden:
            return
        taken, given, found = self._last
        try:
            same = all(map(_is_same, found, self._step(self.third, *given)))
        except SolutionError:  # it could not even take that step
            same = False
        if not same:
            self.hidden = (
                f"step {taken} depends on more than w, g and memory: "
                "a process that had not seen the earlier steps took a different one"
            )

    def _step(self, attempt, w, g, memory):
        """Return the (weights, model, memory) of one call, and record the size of the memory. Raise SolutionError if
        they are invalid.
        """
        found = attempt.call("step", w, g, memory)
        if not isinstance(found, tuple | list) or len(found) != 3:
            raise SolutionError("step(w, g, memory) must return three things: weights, the model to ship, memory.")
        for name, vector in zip(("weights", "a model"), found, strict=False):
            if not isinstance(vector, np.ndarray) or vector.shape != w.shape or vector.dtype.kind != "f":
                what = f"an array of {vector.dtype}, {vector.shape}" if isinstance(vector, np.ndarray) else type(vector)
                raise SolutionError(f"step returned {what} for {name}; expected {len(w)} floats, as in w.")
        if not isinstance(found[2], list):
            raise SolutionError(f"the memory is a {type(found[2]).__name__}; return a list of vectors and numbers.")
        self.vectors = max(self.vectors, _numbers(found[2]) / len(w))
        return found


def _is_same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.allclose(a, b, rtol=1e-6, atol=1e-9 * float(np.abs(a).max()), equal_nan=True)


def _numbers(memory: list) -> int:
    """Return how many numbers the memory holds. Raise SolutionError if it holds anything else."""
    count = 0
    for thing in memory:
        if isinstance(thing, np.ndarray) and thing.dtype.itemsize <= 8:
            count += thing.size
        elif isinstance(thing, float) or (isinstance(thing, int) and abs(thing) < 2**63):
            count += 1
        else:
            raise SolutionError(
                f"the memory has a {type(thing).__name__}; it may hold only vectors, and numbers of 64 bits."
            )
    return count
