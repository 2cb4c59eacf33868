"""Shared memory of the simulated cluster: what other ranks do between a rank's read and its write.

A step takes its time in three parts, during which other ranks continue:

    read      the coordinates are copied as they are
    compute   on the copy
    write     load, add, store, one coordinate after the other, or one piece of a vector that is touched as a whole

The time of a step's memory accesses is exponentially distributed, as some of them hit a cache and some do not;
otherwise threads with equal work would stay in lockstep for ever, which real ones do not.

A coordinate that others have written since the read is a conflict: the step was computed from a stale value. An
addition is lost where the load and store of one coordinate meet those of another rank: the one stored first is
overwritten, unless additions are atomic. So with r the time from load to store, T that of a step, and p the chance that
a step touches the coordinate, each of the N - 1 others overwrites, or is overwritten, about p r / T of the time,

    lost = (N - 1) p r / T        conflicts: the same with r from read to write

and not a whole step's writes over T. A core makes its stores in order, and each waits until its cache line has been
taken from the other core: so r is `TAKEN` for the numbers in the first line that a sparse step touches, twice that in
the second, and so on.

Not so where threads touch all lines in each step, as with dense gradients. They wait for each other's lines, and are
probably coupled: side by side for long, or not at all. What two real threads lose then hardly depends on the length
of the vector, 4 to 14 % in the mean of all sittings, so r is `MEETING`, a constant share of T. Single sittings are up
to forty times apart: the same bowl of 100 numbers lost 0.7 and 28 %.

A vector that is touched as a whole is read and written in `PIECES`, each of them at once, so a read may see one part
before and another after another rank's step. Real threads lose cache lines, all numbers of a line or none; a piece
stands for a stretch of them.

`TAKEN` and `MEETING` were fitted to what two real threads lose, `tests/benchmarks/lost_additions.py`, on cores that
pass a line in 53 to 290 ns. In the mean of all sittings they lost 0.6 to 1.1 times what is simulated with sparse rows
of 4 to 32 lines, 0.29 to 2.0 times in single ones, and 0.6 to 1.7 times with steps that touch all lines. Left out is
how far apart cores are, and that a step takes longer because lines travel.
Source: threads that read and write so are those of Niu, Recht, Re & Wright, NIPS 2011, which assumes atomic additions;
the probability is elementary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from cluster.comm import shares
from cluster.shared_memory import Guard, SharedSteps, WriteCounts
from kernels import METER, metered
from tracing import UPDATE

PIECES = 3  # in which a whole vector is read and written
LINE = 64  # bytes transferred for a single coordinate: a cache line
MEETING = 0.085  # of its time so far, from load to store in a step that touches all cache lines
TAKEN = 4.3e-9  # s that each cache line which a step touches adds to the time from load to store, from there on


class Memory:
    """What the ranks share: the vector, what each number was before its last addition, and the times of that.

    A cell is what is loaded and stored as one: a coordinate, or a piece of the vector.
    """

    def __init__(self, vector: np.ndarray):
        self.vector, self.before = vector.copy(), vector.copy()
        self.steps, self.free = 0, 0.0  # steps so far; when the lock is free, s
        self.pieces = [piece for piece in shares(len(vector), PIECES) if piece.stop > piece.start]
        self._pieces, self._each = Additions(len(self.pieces)), None

    def cells(self, where: Any) -> list[tuple]:
        """Return (place in the vector, `Additions`, which of these cells, numbers in a cell) to go through in turn."""
        if isinstance(where, slice):
            every = enumerate(self.pieces)
            return [(piece, self._pieces, slice(i, i + 1), piece.stop - piece.start) for i, piece in every]
        if self._each is None:
            self._each = Additions(self.vector.size)
        return [(where, self._each, where, 1)]


class Additions:
    """Of each cell how many there were, and when the last one was loaded and stored, s."""

    def __init__(self, cells: int):
        self.written = np.zeros(cells, np.int64)
        self.loaded, self.stored = np.full((2, cells), -np.inf)


class SimulatedVector:
    """The Shared contract for one rank."""

    def __init__(self, comm, memory: Memory, guard: Guard):
        self._comm, self._memory, self._guard = comm, memory, guard
        self._copy = memory.vector.copy()
        self._draws = np.random.default_rng([comm._rank.seed, 0x3E3, comm._rank.number])
        self._began = self._read_at = 0.0  # when this step began to read and when it had read, s
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
        self._began = self._comm._actor.now
        since, seen = memory.steps, []
        for place, additions, cell, _ in cells:
            self._sync()
            copy[place] = memory.vector[place]
            seen.append(additions.written[cell].copy())
            self._move(place)
        self._read_at = self._comm._actor.now
        before = [copy[place].copy() for place, *_ in cells]
        loss = self._compute(part)
        if self._guard in ("writes", "locked"):
            self._lock(cells, times=2)
        for (place, additions, cell, size), old, version in zip(cells, before, seen, strict=True):
            new = copy[place]
            lost = self._store(place, additions, cell, old, new)
            counts.written += new.size
            counts.conflicts += size * int((additions.written[cell] != version).sum())
            counts.lost += size * lost
            additions.written[cell] += 1
        counts.staleness.append(memory.steps - since)
        memory.steps += 1
        return loss

    def _store(self, place: Any, additions: Additions, cell: Any, old: np.ndarray, new: np.ndarray) -> int:
        """Add new - old to these cells, one after the other; return how many additions, own or others', are lost."""
        memory, actor = self._memory, self._comm._actor
        self._sync()
        began = actor.now
        self._move(place, 2)
        self._sync()
        now = memory.vector[place]  # a copy, or a view
        if self._guard != "none":
            sums = now.copy()
            change(sums, old, new)
            memory.vector[place] = sums
            return 0
        if isinstance(place, slice):
            return self._store_piece(place, additions, cell.start, old, new)
        stored = np.linspace(began, actor.now, len(additions.stored[cell]) + 1)[1:]
        loaded = np.maximum(stored - self._window(place, stored), self._read_at)
        meet = (additions.loaded[cell] < stored) & (additions.stored[cell] > loaded)
        last = additions.stored[cell] < stored
        base = np.where(meet & last, memory.before[place], now)  # theirs is overwritten
        sums = base.copy()
        change(sums, old, new)
        before = memory.before[place]
        memory.before[place] = np.where(last, base, np.where(meet, before, before + (new - old)))
        memory.vector[place] = np.where(meet & ~last, now, sums)  # or ours
        additions.loaded[cell] = np.where(last, loaded, additions.loaded[cell])
        additions.stored[cell] = np.where(last, stored, additions.stored[cell])
        return int(meet.sum())

    def _store_piece(self, place: slice, additions: Additions, piece: int, old: np.ndarray, new: np.ndarray) -> int:
        """Do the same with one cell, a piece of the vector."""
        vector, before, end = self._memory.vector[place], self._memory.before[place], self._comm._actor.now
        loaded = max(end - MEETING * (end - self._began), self._read_at)
        meet = additions.loaded[piece] < end and additions.stored[piece] > loaded
        last = additions.stored[piece] < end
        sums = (before if meet and last else vector).copy()  # theirs is overwritten
        if last:
            before[:] = sums
            additions.loaded[piece], additions.stored[piece] = loaded, end
        elif not meet:
            before += new - old
        if last or not meet:  # or ours is overwritten
            change(sums, old, new)
            vector[:] = sums
        return int(meet)

    def _window(self, place: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """Return the time from load to store, s, of each coordinate."""
        lines = place // (LINE // self._copy.itemsize)
        taken = np.cumsum(np.diff(lines, prepend=-1) != 0)
        if taken[-1] * LINE >= self._copy.nbytes:
            return MEETING * (stored - self._began)
        return TAKEN * taken

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
