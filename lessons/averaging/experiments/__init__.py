"""Averaging: what workers gain and lose that train on their own and meet only now and then.

The figures stand in the files of this folder, one group of questions each; here is what they share.
"""

from math import inf

from lessons.figure import interior

SMALL = {"hidden": "32"}  # the digits' model: 2,410 parameters
NO_NETWORK = {"network": "ideal", "device": "1e9:1e15:0"}  # only gradients take time


def at_best(tried):
    """The lowest held-out loss of runs by rate; ValueError if it is that of the smallest or the largest rate."""
    losses = {rate: done.summary["held_out_loss"] for rate, done in tried.items()}
    return losses[interior({rate: inf if loss is None else loss for rate, loss in losses.items()})]  # None: diverged
