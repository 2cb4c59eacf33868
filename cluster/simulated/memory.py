"""Shared memory of the simulated cluster: what other ranks do between a rank's read and its write.

A step takes its time in three parts, during which other ranks continue:

    read      the coordinates are copied as they are
    compute   on the copy
    write     load, add, store: additions that others stored since the load are overwritten, unless additions are atomic

The time of a step's memory accesses is exponentially distributed, as some of them hit a cache and some do not;
otherwise threads with equal work would stay in lockstep for ever, which real ones do not.

A coordinate that others have written since the read is a conflict: the step was computed from a stale value. An
addition that was overwritten is lost. A vector that is touched as a whole is read and written piece by piece, so a read
may see one half before and the other half after another rank's step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cluster.comm import shares
from cluster.shared_memory import Guard, SharedSteps, WriteCounts
from kernels import METER, metered
from tracing import UPDATE

PIECES = 4  # in which a whole vector is read and written
LINE = 64  # bytes transferred for a single coordinate: a cache line


class Memory:
    """What the ranks share: the vector and, for each cell (a coordinate, or a piece of the vector), how many additions
    were written to it and how many of these its present value contains."""

    def __init__(self, vector: np.ndarray):
        self.vector = vector.copy()
        self.steps, self.free = 0, 0.0  # steps so far; when the lock is free, s
        self.pieces = [piece for piece in shares(len(vector), PIECES) if piece.stop > piece.start]
        self.written, self.held = np.zeros((2, len(self.pieces)), np.int64)
        self._each: tuple[np.ndarray, np.ndarray] | None = None

    def cells(self, where: Any) -> list[tuple]:
        """Return (place in the vector, counts of writes, counts of additions held, cell, its size) of each cell."""
        if isinstance(where, slice):
            every = enumerate(self.pieces)
            return [(piece, self.written, self.held, cell, piece.stop - piece.start) for cell, piece in every]
        if self._each is None:
            self._each = tuple(np.zeros((2, self.vector.size), np.int64))
        return [(where, *self._each, where, 1)]


class SimulatedVector:
    """The Shared contract for one rank."""

    def __init__(self, comm, memory: Memory, guard: Guard):
        self._comm, self._memory, self._guard = comm, memory, guard
        self._copy = memory.vector.copy()
        self._draws = np.random.default_rng([comm._rank.seed, 0x3E3, comm._rank.number])
        self._slowdown = 1.0  # factor on the time of this step's memory accesses, in the mean 1

    @property
    def vector(self) -> np.ndarray:
        self._sync()
        return self._memory.vector

    def read(self, where: Any = None) -> np.ndarray:
        """Return a copy of the vector at the time of the call."""
        vector = self.vector
        values = vector.copy() if where is None else np.array(vector[where])
        self._charge(2 * values.nbytes)
        return values

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        """Add `delta`, visible to others when its bytes have been transferred."""
        self._charge(3 * np.asarray(delta).nbytes)
        vector = self.vector
        if where is None or isinstance(where, slice):
            vector[... if where is None else where] += delta
        else:
            np.add.at(vector, where, delta)

    def walk(self, walk: SharedSteps) -> tuple[float, WriteCounts]:
        """Take the steps one by one, each in its own time."""
        counts = WriteCounts(0, 0, 0, [])
        return sum(self._step(part, counts) for part in walk.parts()), counts

    def _step(self, part: SharedSteps, counts: WriteCounts) -> float:
        memory, copy, cells = self._memory, self._copy, self._memory.cells(part.where)
        self._slowdown = self._draws.exponential()
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
            counts.written += new.size
            counts.conflicts += count * int((written[cell] != version).sum())
            counts.lost += count * lost
            written[cell] += 1
        counts.staleness.append(memory.steps - since)
        memory.steps += 1
        return loss

    def _store(self, place: Any, held: np.ndarray, cell: Any, old: np.ndarray, new: np.ndarray) -> int:
        """Load, add new - old, store; return how many additions of others this overwrote."""
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

    def _compute(self, part: SharedSteps) -> float:
        if part.price is None:
            return part(self._copy, False)  # its kernels charge the meter
        with metered(None):
            loss = part(self._copy, False)
        flops, nbytes = part.price
        device = self._comm._sim.device
        if METER.get():
            self._comm.event_log.flops += flops
        self._spend(max(flops / device.flops, nbytes / device.bandwidth))
        return loss

    def _lock(self, cells: list, times: int = 1) -> None:
        """Wait for the lock and hold it for the time of `times` transfers of these cells."""
        self._sync()
        actor, memory = self._comm._actor, self._memory
        while memory.free > actor.now:
            actor.now = memory.free  # the span of the steps covers it
            self._sync()
        seconds = times * sum(self._seconds(place) for place, *_ in cells)
        memory.free = actor.now + seconds * self._comm._rank.slowness()

    def _seconds(self, place: Any) -> float:
        nbytes = (place.stop - place.start) * self._copy.itemsize if isinstance(place, slice) else LINE * len(place)
        return nbytes / self._comm._sim.device.bandwidth * self._slowdown

    def _move(self, place: Any, times: int = 1) -> None:
        self._spend(times * self._seconds(place))

    def _spend(self, seconds: float) -> None:
        """Advance the rank's time, without the overhead of a kernel call: the steps are one compiled loop."""
        if METER.get() is None:
            return
        rank = self._comm._rank
        start, rank.now = rank.now, rank.now + seconds * rank.slowness()
        if rank.interruptible:
            rank.interrupt(working=True)
        if not rank.event_log.busy:
            rank.span(UPDATE, start, rank.now, "shared memory")

    def _charge(self, moved: float) -> None:
        meter = METER.get()
        if meter is not None:
            meter.charge("shared memory", 0.0, moved)

    def _sync(self) -> None:
        self._comm._sim.queue.sync(self._comm._actor)


@njit(cache=True)
def change(now, old, new):
    """Set now to now + (new - old), vectors (n,); exactly to new where now equals old."""
    for v in range(now.size):
        now[v] = new[v] if now[v] == old[v] else now[v] + (new[v] - old[v])
