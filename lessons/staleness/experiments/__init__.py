"""Staleness: what it costs if gradients are old when they arrive, and how to live with it.

Each file of this folder holds the figures of one group of questions; what they share is here.
"""

import numpy as np

HEAVY = 300  # times as long as its few numbers take: a large model's gradient, next to which the server takes no time
BOWL = {"workload": "quadratic", "batch": 1, "network": "ideal", "precision": "float64", "evaluations": 2, "points": 64}
DIGITS = {"hidden": "32", "batch": 16, "jitter": "cloud", "evaluations": 2}  # 2,410 parameters
GUESSING = float(np.log(10))  # the loss of a model that predicts all digits with equal probability
NOTHING = 0.65 * GUESSING  # a model that has learned little or nothing
LEARNED = 0.5  # only a model that can read digits has a loss this low
TIMES = {"all alike": "none", "nearly alike": "cloud", "heavy tail": "pareto", "exponential": "exponential"}


def slow(workers, slowest=1):
    """Return the setting `slow` that makes gradients expensive. The last worker's take `slowest` times as long as the
    first's.
    """
    factors = HEAVY * np.linspace(1 / slowest, 1, workers)
    return ",".join(f"{worker}:{factor:g}" for worker, factor in enumerate(factors, 1))


def time_of(run, gradients, dimension):
    """Return how long `gradients` expensive gradients on a bowl take one after the other, without disturbance, in s."""
    done = run(algorithm="asgd", workers=1, learning_rate=0.05, steps=10, slow=slow(1), dimension=dimension, **BOWL)
    return gradients / 10 * float(done.evaluations["seconds"][-1])


def end_loss(done):
    """Return the final held-out loss; infinite if the run diverged."""
    loss = done.summary["held_out_loss"]
    return float("inf") if loss is None else loss
