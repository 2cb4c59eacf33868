"""Figures on decoupled learning: modules that do not wait for their errors, what they learn from instead, and what that
costs.

Each file of this folder holds the figures of one group of questions; what they share is here.
"""

from math import inf

import numpy as np

DEEP = {"model": "residual", "depth": 14, "width": 32, "activation": "tanh"}  # sixteen layers
TIMED = {
    "back-propagation": {"algorithm": "layer_wise"},
    "feedback alignment": {"algorithm": "feedback_alignment", "direct": False},
    "DFA": {"algorithm": "feedback_alignment"},
    "DDG": {"algorithm": "ddg"},
    "DDG, no barrier": {"algorithm": "ddg", "barrier": False},
    "features replay": {"algorithm": "features_replay"},
    "features replay, no barrier": {"algorithm": "features_replay", "barrier": False},
    "DNI": {"algorithm": "dni"},
    "DNI, lessons late": {"algorithm": "dni", "late": 1},
    "greedy": {"algorithm": "greedy"},
}

EIGHT = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers
WIDE = {"batch": 128, "network": "ideal", **EIGHT}
LAST = 30  # steps over which a loss is averaged


def final_loss(done) -> float:
    """Return the mean loss of the last mini-batches, or infinity if training diverged."""
    loss = done.losses["loss"][-LAST:].mean()
    return float(loss) if np.isfinite(loss) else inf


def at_best(run, rates, **values):
    """Return (rate, run) for a learning rate that ends at a lower loss than the next smaller and the next larger one in
    `rates`.

    The search begins in the middle and follows the lower loss, so it seldom tries all of them.
    """
    tried, here = {}, len(rates) // 2
    while True:
        for n in range(max(0, here - 1), min(len(rates), here + 2)):
            if n not in tried:
                tried[n] = run(learning_rate=rates[n], **values)
        best = min(tried, key=lambda n: final_loss(tried[n]))
        if best == here:
            return rates[here], tried[here]
        here = best


def lately(done, quantity) -> float:
    """Return the median of a quantity over the last five evaluations."""
    return float(np.median(done.evaluations[quantity][-5:]))
