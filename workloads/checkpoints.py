"""Checkpoints: for each restart of a rank, the newest model that was reported before the restart."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np


class Checkpoint(Protocol):
    """The interface of a store of models from which ranks restart: `Checkpoints`, or `cluster.real.checkpoint` on real
    ranks.
    """

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None: ...
    def read(self, moment: float) -> np.ndarray | None: ...
    def losses(self, event_log: Any) -> list[tuple]: ...


class Checkpoints:
    """A store of one model for each of the `moments` (s) at which a rank restarts: the last one reported before. Before
    any report, the model is `w`.
    """

    def __init__(self, w: np.ndarray, moments: Iterable[float]):
        self._models = {moment: w.copy() for moment in moments}

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None:
        """Store `part`, the part of the model at `where`, which was reported at time `seconds`."""
        for moment, w in self._models.items():
            if seconds <= moment:
                w[where] = part

    def read(self, moment: float) -> np.ndarray | None:
        """Return the model from which a rank restarts at this moment, (d,), or None if none restarts then."""
        return self._models.get(moment)

    def losses(self, event_log) -> list[tuple]:
        """Return the rows of losses that a restarted rank's previous incarnation recorded."""
        return event_log.losses
