"""Memory that all ranks of a group see, with what happens between a rank's look at it and its writing.

A step of a walk takes its time in three parts, and other ranks go on meanwhile:

    look      the coordinates are copied as they are
    compute   on the copy
    write     load, add, store: whatever others have stored since the load is overwritten, unless additions are atomic

How long a step's memory takes varies, exponentially, as some of it lies in a cache and some does not; otherwise equal
threads would do everything at the same moment for ever, as no real ones do.

A coordinate that others have written since the look is a conflict: the step was computed from a value that is no more.
An addition that was overwritten is lost. A vector that is touched as a whole is looked at and written piece after
piece, so a look may see one half before and the other half after somebody's step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cluster.comm import Guard, Tally, Walk, shares
from kernels import METER, metered
from tracing import UPDATE

PIECES = 4  # in which a whole vector is looked at and written
LINE = 64  # bytes that move for a coordinate that is touched alone


class Memory:
    """What the ranks share: the vector, and for each cell (a coordinate, or a piece of all) how often it was written
    and how many of these additions are in what it holds now."""

    def __init__(self, vector: np.ndarray):
        self.vector = vector.copy()
        self.steps, self.free = 0, 0.0  # steps of walks so far; when the lock is free
        self.pieces = [piece for piece in shares(len(vector), PIECES) if piece.stop > piece.start]
        self.written, self.held = np.zeros((2, len(self.pieces)), np.int64)
        self._each: tuple[np.ndarray, np.ndarray] | None = None

    def cells(self, where: Any) -> list[tuple]:
        """(place in the vector, counts of writes, counts of what is held, cell, coordinates to a cell)."""
        if isinstance(where, slice):
            every = enumerate(self.pieces)
            return [(piece, self.written, self.held, cell, piece.stop - piece.start) for cell, piece in every]
        if self._each is None:
            self._each = tuple(np.zeros((2, self.vector.size), np.int64))
        return [(where, *self._each, where, 1)]


class SharedVector:
    """The Shared contract of one rank."""

    def __init__(self, comm, memory: Memory, guard: Guard):
        self._comm, self._memory, self._guard = comm, memory, guard
        self._copy = memory.vector.copy()
        self._draws = np.random.default_rng([comm._rank.seed, 0x3E3, comm._rank.number])
        self._luck = 1.0  # how long this step's memory takes, in the mean 1

    @property
    def vector(self) -> np.ndarray:
        self._sync()
        return self._memory.vector

    def read(self, where: Any = None) -> np.ndarray:
        """A copy, as it is at the moment of the call."""
        vector = self.vector
        values = vector.copy() if where is None else np.array(vector[where])
        self._charge(2 * values.nbytes)
        return values

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        """Add; others see it when the bytes have been moved."""
        self._charge(3 * np.asarray(delta).nbytes)
        vector = self.vector
        if where is None or isinstance(where, slice):
            vector[... if where is None else where] += delta
        else:
            np.add.at(vector, where, delta)

    def walk(self, walk: Walk) -> tuple[float, Tally]:
        """Step by step, each in its time."""
        tally = Tally(0, 0, 0, [])
        return sum(self._step(part, tally) for part in walk.parts()), tally

    def _step(self, part: Walk, tally: Tally) -> float:
        memory, copy, cells = self._memory, self._copy, self._memory.cells(part.where)
        self._luck = self._draws.exponential()
        if self._guard == "locked":
            self._lock(cells)
        self._sync()
        since, seen = memory.steps, []
        for place, written, _, cell, _ in cells:
            self._sync()
            copy[place] = memory.vector[place]
            seen.append(written[cell].copy())
            self._move(place)
        before = [copy[place].copy() for place, *_ in cells]
        loss = self._compute(part)
        if self._guard in ("writes", "locked"):
            self._lock(cells, times=2)
        for (place, written, held, cell, count), old, version in zip(cells, before, seen, strict=True):
            new = copy[place]
            lost = self._store(place, held, cell, old, new)
            tally.written += new.size
            tally.conflicts += count * int((written[cell] != version).sum())
            tally.lost += count * lost
            written[cell] += 1
        tally.staleness.append(memory.steps - since)
        memory.steps += 1
        return loss

    def _store(self, place: Any, held: np.ndarray, cell: Any, old: np.ndarray, new: np.ndarray) -> int:
        """Load, add what makes new of old, store; gives how many additions of others this overwrote."""
        vector = self._memory.vector
        self._sync()
        loaded, of = vector[place].copy(), held[cell].copy()
        self._move(place, 2)
        self._sync()
        if self._guard != "none":
            loaded, of = vector[place].copy(), held[cell].copy()
        lost = int((held[cell] - of).sum())
        change(loaded, old, new)
        vector[place] = loaded
        held[cell] = of + 1
        return lost

    def _compute(self, part: Walk) -> float:
        if part.price is None:
            return part(self._copy, False)  # its kernels say what they take
        with metered(None):
            loss = part(self._copy, False)
        flops, nbytes = part.price
        device = self._comm._sim.device
        self._spend(max(flops / device.flops, nbytes / device.bandwidth))
        return loss

    def _lock(self, cells: list, times: int = 1) -> None:
        """Wait for the lock and keep it as long as it takes to move these cells so many times."""
        self._sync()
        actor, memory = self._comm._actor, self._memory
        while memory.free > actor.now:
            actor.now = memory.free  # the walk's span covers it
            self._sync()
        seconds = times * sum(self._seconds(place) for place, *_ in cells)
        memory.free = actor.now + seconds * self._comm._rank.slowness()

    def _seconds(self, place: Any) -> float:
        nbytes = (place.stop - place.start) * self._copy.itemsize if isinstance(place, slice) else LINE * len(place)
        return nbytes / self._comm._sim.device.bandwidth * self._luck

    def _move(self, place: Any, times: int = 1) -> None:
        self._spend(times * self._seconds(place))

    def _spend(self, seconds: float) -> None:
        """Time goes on, without the cost of a call: a walk is one compiled loop."""
        if METER.get() is None:
            return
        rank = self._comm._rank
        start, rank.now = rank.now, rank.now + seconds * rank.slowness()
        if rank.watched:
            rank.live(working=True)
        if not rank.event_log.busy:
            rank.span(UPDATE, start, rank.now, "shared memory")

    def _charge(self, moved: float) -> None:
        meter = METER.get()
        if meter is not None:
            meter.charge("shared memory", 0.0, moved)

    def _sync(self) -> None:
        self._comm._sim.sync(self._comm._actor)


@njit(cache=True)
def change(now, old, new):
    """now <- now + (new - old), vectors (n,); to the bit new where now is old."""
    for v in range(now.size):
        now[v] = new[v] if now[v] == old[v] else now[v] + (new[v] - old[v])
