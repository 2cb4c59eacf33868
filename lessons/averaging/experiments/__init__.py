"""Averaging: what workers gain and lose if they train on their own and average their models only occasionally.

Each file of this folder holds the figures of one group of questions; what they share is here.
"""

from math import inf

from lessons.figure import interior

SMALL = {"hidden": "32"}  # the digits' model: 2,410 parameters
NO_NETWORK = {"network": "ideal", "device": "1e9:1e15:0"}  # only gradients take time


def at_best(tried):
    """Return the lowest held-out loss in `tried`, which maps learning rates to runs.

    Raise ValueError if the smallest or largest rate has the lowest loss.
    """
    losses = {rate: done.summary["held_out_loss"] for rate, done in tried.items()}
    return losses[interior({rate: inf if loss is None else loss for rate, loss in losses.items()})]  # None: diverged
