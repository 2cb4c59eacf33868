"""The margin of a claim: whether it would still hold if seeds differed more than the recorded ones do.

Each seed's rows are moved away from the mean of all seeds, in all columns at once. The farthest of five seeds lies at
most 1.8 standard deviations from their mean, so STRETCH moves none beyond 2.25, and a claim that breaks here is too
close to its threshold. A claim that holds may still be too close, since the farthest seed lies at only 1.3 on average.
This costs no run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from experiments.viewer.look import Rows
from lessons.figure import Figure

STRETCH = 1.25


def thin_claims(figure: Figure, samples: Sequence[Rows], by: float = STRETCH) -> list[str]:
    """Return the claims that break if every seed's rows are `by` times as far from the mean as in `samples`."""
    farther = [stretch(samples, place, by) for place in range(len(samples))]
    return [claim for claim, holds in figure.claims.items() if not all(map(holds, farther))]


def stretch(samples: Sequence[Rows], place: int, by: float) -> Rows:
    """Return the rows of the seed at index `place`, with their distance from the mean over seeds scaled by `by`.

    Positive numbers move on a logarithmic scale. Counts, and values that two seeds share (such as the best rate), stay.
    """
    return [
        {column: _stretched([row[column] for row in rows], place, by) for column in rows[0]}
        for rows in zip(*samples, strict=True)
    ]


def _stretched(values: list, place: int, by: float):
    if not all(isinstance(value, float) and math.isfinite(value) for value in values) or len({*values}) < len(values):
        return values[place]
    if min(values) > 0:
        logs = np.log(values)
        return float(np.exp(logs.mean() + by * (logs[place] - logs.mean())))
    return float(np.mean(values) + by * (values[place] - np.mean(values)))
