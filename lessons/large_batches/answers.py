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
    """Return whether the large batch ends at the small batch's loss after as many "steps" or after as many "epochs"."""
    size, scaled = int(batch.split(",")[0]), "times" in batch
    small = experiments.at_the_same_rate(run, 16)
    large = experiments.at_the_same_rate(run, size, 16 if scaled else size)
    end = len(large)
    reached = large[end // 2 :].mean()
    at = {"steps": end, "epochs": len(small)}
    return min(at, key=lambda key: abs(log(reached / small[at[key] // 2 : at[key]].mean())))


def knee(run, batch: int, rate: str) -> str:
    """Return how the held-out error of a batch, at k times the rate or at the same rate, compares with the small
    batch's: "alike", "worse" or "lost".
    """
    base_batch = 16 if "linear" in rate else batch
    small = experiments.train_at_scaled_rate(run, 16, base_batch=16)[0]
    more = experiments.train_at_scaled_rate(run, batch, base_batch=base_batch)[0] - small
    return "alike" if more < 1.5 else "worse" if more < 20 else "lost"


def rate(run, workers: int, optimiser: str) -> float:
    """Return the rate for a batch `workers` times as large as one for which the rate is 0.1."""
    return 0.1 * (workers if optimiser == "SGD" else sqrt(workers))


def start(run) -> str:
    """Return the kind of warm-up whose worst mini-batch has the highest loss."""
    rows = experiments.warm_up.rows(run)
    worst = {kind: value(rows, "worst", warm_up=kind) for kind in ("none", "constant", "gradual")}
    return max(worst, key=worst.get)


def rule(run, batch: int) -> str:
    """Return the rule with the lower final training loss: "linear" or "root"."""
    losses = {
        key: experiments.train_at_scaled_rate(run, batch, base_batch=experiments.base_batch(kind, batch))[1]
        for key, kind in (("linear", "k times"), ("root", "root of k"))
    }
    return min(losses, key=losses.get)


def gain(run, critical: int, batch: int) -> float:
    """Return the gain of a batch's best step, as a percentage of the most that any step can gain."""
    return 100 / (1 + critical / batch)


def fewer(run, critical: int, batch: int) -> float:
    """Return how many times as many steps a batch needs as a batch that is four times as large."""
    return (1 + critical / batch) / (1 + critical / (4 * batch))


def updates(run, milestones: str) -> float:
    """Return the number of updates in 18 epochs if the initial batch of 16 is doubled at each milestone."""
    per_epoch = IMAGES // 16
    settings = batch_growth.Settings(schedule="grow", factor=2, milestones=milestones)
    return float(batch_growth.updates(settings, 18 * per_epoch, per_epoch))


def rescaled(run, factor: int, rule: str) -> float:
    """Return the length of the first step if the weights are multiplied by `factor` and their gradient is divided by
    it, as a multiple of the length without that.
    """
    w, g = np.random.default_rng(0).normal(size=(2, 100))
    step = FIRST_STEPS[rule]
    return float(np.linalg.norm(step(factor * w, g / factor)) / np.linalg.norm(step(w, g)))
