"""Checkpoints: the newest reported model at each time at which a rank restarts, which it restarts from."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Checkpoints:
    """The model as it was last reported by each of the `moments` (s) of restarts; `w` before any report."""

    def __init__(self, w: np.ndarray, moments: Iterable[float]):
        self._models = {moment: w.copy() for moment in moments}

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None:
        """Record that the part of the model at `where` was reported at this time."""
        for moment, w in self._models.items():
            if seconds <= moment:
                w[where] = part

    def read(self, moment: float) -> np.ndarray | None:
        """Return the model that a rank restarts from at this moment, (d,); None if none restarts then."""
        return self._models.get(moment)

    def losses(self, event_log) -> list[tuple]:
        """Return the rows of losses that the predecessor of a rank that restarts had recorded."""
        return event_log.losses
