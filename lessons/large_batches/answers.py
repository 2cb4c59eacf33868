"""Answers to the quiz on large batches, computed by the simulator or by closed forms."""

from math import log, sqrt

import numpy as np

from algorithms.synchronous import batch_growth
from lessons.figure import value
from lessons.large_batches import experiments

FIRST_STEPS = {  # at a rate of 1, as functions of the weights and their gradient
    "SGD": lambda w, g: g,
    "Adam": lambda w, g: np.sign(g),
    "LARS": lambda w, g: g * np.linalg.norm(w) / np.linalg.norm(g),
    "LAMB": lambda w, g: np.sign(g) * np.linalg.norm(w) / np.linalg.norm(np.sign(g)),
}
IMAGES = 1437  # digits to train on


def same_rate(run, batch: str) -> str:
    """Return whether the large batch reaches the small batch's training loss after as many "steps" or after as many
    "epochs".
    """
    size, scaled = int(batch.split(",")[0]), "times" in batch
    small = experiments.at_the_same_rate(run, 16)
    large = experiments.at_the_same_rate(run, size, 16 if scaled else size)
    end = len(large)
    reached = large[end // 2 :].mean()
    at = {"steps": end, "epochs": len(small)}
    return min(at, key=lambda key: abs(log(reached / small[at[key] // 2 : at[key]].mean())))


def knee(run, batch: int, rate: str) -> str:
    """Compare the held-out error of a large batch with the small batch's: "alike", "worse" or "lost".

    The learning rate of the large batch is k times the small batch's, or the same, as `rate` says.
    """
    base_batch = 16 if "linear" in rate else batch
    small = experiments.train_at_scaled_rate(run, 16, base_batch=16)[0]
    more = experiments.train_at_scaled_rate(run, batch, base_batch=base_batch)[0] - small
    return "alike" if more < 1.5 else "worse" if more < 20 else "lost"


def rate(run, workers: int, optimiser: str) -> float:
    """Return the learning rate for a batch `workers` times as large as one whose learning rate is 0.1."""
    return 0.1 * (workers if optimiser == "SGD" else sqrt(workers))


def start(run) -> str:
    """Return the kind of warm-up with the highest loss on any mini-batch: "none", "constant" or "gradual"."""
    rows = experiments.warm_up.rows(run)
    worst = {kind: value(rows, "worst", warm_up=kind) for kind in ("none", "constant", "gradual")}
    return max(worst, key=worst.get)


def rule(run, batch: int) -> str:
    """Return the scaling rule for the learning rate that ends at the lower training loss: "linear" or "root"."""
    losses = {
        key: experiments.train_at_scaled_rate(run, batch, base_batch=experiments.base_batch(kind, batch))[1]
        for key, kind in (("linear", "k times"), ("root", "root of k"))
    }
    return min(losses, key=losses.get)


def gain(run, critical: int, batch: int) -> float:
    """Return how much a batch's best step reduces the loss, as a percentage of the largest reduction that any step can
    reach.
    """
    return 100 / (1 + critical / batch)


def fewer(run, critical: int, batch: int) -> float:
    """Return the ratio of the steps that a batch needs to the steps that a batch four times as large needs."""
    return (1 + critical / batch) / (1 + critical / (4 * batch))


def updates(run, milestones: str) -> float:
    """Return the number of updates in 18 epochs if the initial batch of 16 is doubled at each milestone."""
    per_epoch = IMAGES // 16
    settings = batch_growth.Settings(schedule="grow", factor=2, milestones=milestones)
    return float(batch_growth.updates(settings, 18 * per_epoch, per_epoch))


def rescaled(run, factor: int, rule: str) -> float:
    """Return the relative length of the first step after the weights are multiplied by `factor` and their gradient is
    divided by it. Without the rescaling it is 1.
    """
    w, g = np.random.default_rng(0).normal(size=(2, 100))
    step = FIRST_STEPS[rule]
    return float(np.linalg.norm(step(factor * w, g / factor)) / np.linalg.norm(step(w, g)))
