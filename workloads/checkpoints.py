"""Checkpoints: what a rank that has lost everything begins again with, the newest model that anybody had reported."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Checkpoints:
    """The model as it was reported by each of the `moments` (s) at which ranks come back; `w` before any report."""

    def __init__(self, w: np.ndarray, moments: Iterable[float]):
        self._models = {moment: w.copy() for moment in moments}

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None:
        """This part of the model was reported at this time, as a part at `where`."""
        for moment, w in self._models.items():
            if seconds <= moment:
                w[where] = part

    def read(self, moment: float) -> np.ndarray | None:
        """The model that a rank comes back to at this moment, (d,); None if none comes back then."""
        return self._models.get(moment)
