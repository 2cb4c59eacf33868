"""Checkpoints among real ranks: the newest reported model, in memory that they share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import numpy as np

from cluster.event_log import EventLog
from cluster.real import memory


class SharedCheckpoint:
    """The model as it was last reported, `w` before any report: to real ranks what Checkpoints are to simulated ones.

    The parent of the ranks makes it; they attach its memory when they first use it. `past` is the losses that the
    predecessor of a rank that comes back had recorded, None for every other rank.
    """

    def __init__(self, w: np.ndarray):
        self._size, self._dtype = w.size, w.dtype
        self.past: list[tuple] | None = None
        self._descriptor, self._path = memory.create(w.nbytes)
        self._w: np.ndarray | None = None
        self.write(0.0, slice(None), w)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_descriptor": -1, "_w": None}

    def after(self, losses: list[tuple]) -> SharedCheckpoint:
        """Return this for a rank that comes back and whose predecessor had recorded these rows of losses."""
        again = copy(self)
        again.past = losses
        return again

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None:
        """Record that the part of the model at `where` was reported."""
        with self._locked() as w:
            w[where] = part

    def read(self, moment: float) -> np.ndarray | None:
        """Return the model that a rank restarts from, (d,); None if this one does not restart."""
        if self.past is None:
            return None
        with self._locked() as w:
            return w.copy()

    def losses(self, event_log: EventLog) -> list[tuple]:
        """Return the rows of losses that the predecessor of a rank that restarts had recorded."""
        return self.past or []

    def close(self) -> None:
        """Free the memory, once the ranks have ended."""
        memory.forget(self._descriptor, self._path)

    @contextmanager
    def _locked(self) -> Iterator[np.ndarray]:
        """Hold the model, so that nobody sees half a report."""
        if self._w is None:
            if self._descriptor < 0:
                self._descriptor = memory.open_path(self._path)
            self._w = memory.attach(self._descriptor, np.empty(self._size, self._dtype))
        with memory.locked(self._descriptor):
            yield self._w
