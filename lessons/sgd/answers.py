"""Answers to the quiz on stochastic gradient descent: closed forms, and short runs."""

from math import log

import numpy as np

from lessons.sgd import experiments
from lessons.sgd.experiments import EDGES, IMAGES, NOISY

MOMENTUM = {"plain SGD": 0.0, "heavy ball with a momentum of 0.9": 0.9, "Nesterov's momentum of 0.9": 0.9}
SHARES = {"an eighth": 1 / 8, "a quarter": 1 / 4, "one": 1.0}
RULES = {"AdaGrad": "adagrad", "Heavy ball": "momentum", "Adam": "adam"}
ENOUGH = 80  # passes


def passes(run, batch: int) -> float:
    """Return how many passes over the data the full batch needs to reach the held-out loss that small batches reach in
    one.
    """
    values = {"algorithm": "sgd", "workers": 1, "hidden": "32", "evaluations": 10_000}
    goal = run(batch=batch, epochs=1, learning_rate=experiments.BATCHES[batch][1], **values).summary["held_out_loss"]
    rate = experiments.BATCHES[IMAGES][1]
    losses = run(batch=IMAGES, epochs=ENOUGH, learning_rate=rate, **values).evaluations["loss"]
    return float(np.flatnonzero(losses <= goal)[0])  # a step a pass


def longest(run, method: str, curvature: float) -> float:
    """Return the largest stable learning rate at this curvature."""
    edge = EDGES["Nesterov" if "Nesterov" in method else "heavy ball"]
    return edge(MOMENTUM[method]) / curvature


def stall(run, rate: float, batch: int) -> float:
    """Return the factor by which this learning rate and batch size lower the floor of the loss, at a curvature of 1.

    The comparison is with a learning rate of 0.2 and single samples.
    """
    return _floor(0.2) / _floor(rate) * batch


def _floor(rate: float) -> float:
    return rate / (2 - rate)


def guess(run, scale: str) -> float:
    """Return the loss at step 1,000 divided by the loss at step 16,000. The curvature is 1, and the learning rate is
    `scale` / t.
    """
    square, losses = 1.0, []
    for t in range(1, 16_001):
        rate = SHARES[scale] / t
        square = (1 - rate) ** 2 * square + (0.01 * rate) ** 2
        losses.append(square)
    return losses[999] / losses[-1]


def averaged(run, times: str, ships: str) -> str:
    """Return how the loss of the shipped model changes if the learning rate is four or twenty times as large: "same",
    "some" or "more".

    "some" is an increase by a factor below ten, and "more" a larger one.
    """
    values = {"algorithm": "polyak", "after": 500} if "mean" in ships else {"algorithm": "sgd"}
    low, high = (
        run(learning_rate=rate, steps=2500, evaluations=2, **values, **NOISY).summary["held_out_loss"]
        for rate in (0.05, 0.05 * {"four": 4, "twenty": 20}[times])
    )
    return "same" if high < 4 / 3 * low else "some" if high < 10 * low else "more"


def valley(run, narrower: int, rule: str) -> float:
    """Return the ratio of the steps for a valley of condition number 100 * `narrower` to those for one of condition
    number 100.
    """

    def steps(condition: float) -> float:
        root = condition if rule == "SGD" else condition**0.5
        return 1 / log((root + 1) / (root - 1))

    return steps(100 * narrower) / steps(100)


def turned(run, rule: str) -> str:
    """Return how many more steps an optimizer needs if the valley is rotated: the "same" number, "some" more or "many"
    more.
    """
    dice = np.random.default_rng(run.seed)
    start, rotation = dice.standard_normal(20), np.linalg.qr(dice.standard_normal((20, 20)))[0]
    along, across = (
        min(experiments.steps_down(run, RULES[rule], rate, start, axes) for rate in experiments.TURNED[RULES[rule]])
        for axes in (np.eye(20), rotation)
    )
    return "same" if across < 4 / 3 * along else "some" if across < 10 * along else "many"


def lifted(run, momentum: float) -> float:
    """Return by what factor momentum raises the floor of the loss, at a learning rate of 0.05 and a curvature of 1."""
    return (1 + momentum) / (1 - momentum) * (2 - 0.05) / (2 * (1 + momentum) - 0.05)


def sixteen(run, rate: float) -> str:
    """Return what becomes of SGD with 16 times the batch and the learning rate: it "diverges", or its floor is "alike"
    or "higher".

    The largest curvature is 1.
    """
    if 16 * rate >= EDGES["heavy ball"](0):
        return "diverges"
    return "alike" if _floor(16 * rate) / 16 < 1.3 * _floor(rate) else "higher"
