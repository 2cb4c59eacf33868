"""Checkpoints of real ranks: the newest reported model, in memory that the ranks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

import numpy as np

from cluster.event_log import EventLog
from cluster.real import memory


class SharedCheckpoint:
    """The model that was reported last, or `w` before any report. Simulated ranks use `Checkpoints` instead.

    The parent of the ranks creates it, and the ranks attach its memory when they first use it. For a restarted rank,
    `past` has the rows of losses that its predecessor recorded; for every other rank it is None.
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
        """Return the checkpoint for a restarted rank whose previous incarnation recorded these rows of losses."""
        again = copy(self)
        again.past = losses
        return again

    def write(self, seconds: float, where: slice | np.ndarray, part: np.ndarray) -> None:
        """Store `part`, the reported part of the model at `where`."""
        with self._hold() as w:
            w[where] = part

    def read(self, moment: float) -> np.ndarray | None:
        """Return the model from which this rank restarts, (d,), or None if it is not a restarted rank."""
        if self.past is None:
            return None
        with self._hold() as w:
            return w.copy()

    def losses(self, event_log: EventLog) -> list[tuple]:
        """Return the rows of losses that this rank's previous incarnation recorded."""
        return self.past or []

    def close(self) -> None:
        """Free the memory. Call this once the ranks have ended."""
        memory.forget(self._descriptor, self._path)

    @contextmanager
    def _hold(self) -> Iterator[np.ndarray]:
        """Yield the model while holding its lock, so that no rank reads a report that is only half written."""
        if self._w is None:
            if self._descriptor < 0:
                self._descriptor = memory.open_path(self._path)
            self._w = memory.attach(self._descriptor, np.empty(self._size, self._dtype))
        with memory.hold_lock(self._descriptor):
            yield self._w
