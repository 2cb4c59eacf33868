"""The shared memory of the simulated cluster, in which other ranks act between a rank's read and its write.

A step has three parts, and other ranks continue during each of them:

    read      copy the coordinates as they are
    compute   on the copy
    write     load, add, store: one coordinate after the other, or one piece of a vector that is accessed as a whole

The time of a step's memory accesses is exponentially distributed, since some accesses hit a cache and others do not.
Otherwise threads with equal work would stay in lockstep forever, which real threads do not.

A vector that is accessed as a whole is read and written in `PIECES` pieces, each at one moment, so a read may see one
piece before and another after a step of another rank. Real threads lose cache lines, all numbers of a line or none; a
piece represents a number of lines. cells.py decides what is lost when two writes overlap.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.comm import shares
from cluster.shared_memory import Guard, SharedSteps, WriteCounts
from cluster.simulated.cells import Additions, Coordinates, VectorPiece
from kernels import METER, meter_kernels
from tracing import UPDATE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank

PIECES = 3  # number of pieces in which a whole vector is read and written


class Memory:
    """The state that the ranks share: the vector, its cells, and the latest additions to each cell."""

    def __init__(self, vector: np.ndarray):
        self.vector, self.before = vector.copy(), vector.copy()  # before: each number before its last addition
        self.steps = 0  # number of steps so far
        self.free = 0.0  # s: when the lock becomes free; infinite until its holder knows
        self.waiting: list[Rank] = []  # ranks that wait for the lock
        places = [place for place in shares(len(vector), PIECES) if place.stop > place.start]
        self.pieces = [VectorPiece(self.vector, self.before, place) for place in places]
        self._each: Additions | None = None  # to single coordinates; created when first needed, since it is large

    def cells(self, where: Any) -> Sequence[VectorPiece | Coordinates]:
        """Return the cells that a step accesses, in order. `where` is an index array, or a slice for all of them."""
        if isinstance(where, slice):
            return self.pieces
        if self._each is None:
            self._each = Additions(self.vector.size)
        return [Coordinates(self.vector, self.before, where, self._each)]


class SimulatedVector:
    """One rank's view of a simulated shared vector; it implements `Shared`."""

    def __init__(self, comm, memory: Memory, guard: Guard):
        self._comm, self._memory, self._guard = comm, memory, guard
        self._copy, self._read = memory.vector.copy(), memory.vector.copy()  # the step's copy, and the values it read
        self._draws = np.random.default_rng([comm.owner.seed, 0x3E3, comm.owner.number])
        self._began = self._read_at = 0.0  # s: when this step began to read, and when it had read everything
        self._slowdown = 1.0  # factor on the time of this step's memory accesses, 1 on average

    @property
    def vector(self) -> np.ndarray:
        self._sync()
        return self._memory.vector

    def read(self, where: Any = None) -> np.ndarray:
        """Return a copy of the vector as it is now or, if reads take the lock, as it is once the lock is free."""
        with self._lock("locked"):
            vector = self.vector
            values = vector.copy() if where is None else np.array(vector[where])
            self._charge(2 * values.nbytes)
        return values

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        """Add `delta`. Others see it once its bytes have been transferred."""
        with self._lock("writes", "locked"):
            self._charge(3 * np.asarray(delta).nbytes)
            vector = self.vector
            if where is None or isinstance(where, slice):
                vector[... if where is None else where] += delta
            else:
                np.add.at(vector, where, delta)

    def walk(self, walk: SharedSteps) -> tuple[float, WriteCounts]:
        """Take the steps one by one, advancing the rank's time; return (the sum of their losses, the write counts)."""
        counts = WriteCounts(0, 0, 0, [])
        return sum(self._step(part, counts) for part in walk.parts()), counts

    def _step(self, part: SharedSteps, counts: WriteCounts) -> float:
        memory, cells = self._memory, self._memory.cells(part.where)
        self._slowdown = self._draws.exponential()
        with self._lock("locked"):
            self._sync()
            self._began = self._comm._actor.now
            since = memory.steps
            versions: list[Any] = []
            for cell in cells:
                self._sync()
                versions.append(cell.read(self._copy, self._read))
                self._spend(self._seconds(cell))
        self._read_at = self._comm._actor.now
        loss = self._compute(part)
        with self._lock("writes", "locked"):
            for cell, version in zip(cells, versions, strict=True):
                lost = self._write(cell)
                counts.written += cell.numbers
                counts.conflicts += cell.count(version)
                counts.lost += lost
        counts.staleness.append(memory.steps - since)
        memory.steps += 1
        return loss

    def _write(self, cell: VectorPiece | Coordinates) -> int:
        """Add the step's changes to `cell`. Return the number of additions lost, this rank's or others'."""
        actor, place = self._comm._actor, cell.place
        self._sync()
        began = actor.now
        self._spend(2 * self._seconds(cell))
        self._sync()
        old, new = self._read[place], self._copy[place]
        if self._guard != "none":
            cell.add(old, new)
            return 0
        return cell.store(old, new, self._began, self._read_at, began, actor.now)

    def _compute(self, part: SharedSteps) -> float:
        if part.price is None:
            return part(self._copy, False)  # its kernels charge the meter
        with meter_kernels(None):
            loss = part(self._copy, False)
        flops, nbytes = part.price
        device = self._comm._sim.device
        if METER.get():
            self._comm.event_log.flops += flops
        self._spend(max(flops / device.flops, nbytes / device.bandwidth))
        return loss

    @contextmanager
    def _lock(self, *guards: Guard) -> Iterator[None]:
        """Hold the lock during the block, in simulated time, if the guard is one of `guards`."""
        if self._guard not in guards:
            yield
            return
        self._await_lock()
        memory, rank, queue = self._memory, self._comm.owner, self._comm._sim.queue
        memory.free = math.inf
        try:
            yield
        finally:
            memory.free = rank.now  # which may be ahead of the queue: until then others find the lock held
            for waiting in memory.waiting:
                queue.push(memory.free, waiting)
            memory.waiting.clear()

    def _await_lock(self) -> None:
        self._sync()
        memory, rank, queue = self._memory, self._comm.owner, self._comm._sim.queue
        start = rank.now
        while memory.free > rank.now:
            if memory.free < math.inf:
                queue.push(memory.free, rank)
            else:
                memory.waiting.append(rank)
            queue.wait(rank)
            rank.now = max(rank.now, queue.now)
        if not rank.event_log.busy:
            rank.span(WAIT, start, rank.now, "shared memory")

    def _seconds(self, cell: VectorPiece | Coordinates) -> float:
        """Return how long this step takes to load or store a cell, in s."""
        return cell.nbytes / self._comm._sim.device.bandwidth * self._slowdown

    def _spend(self, seconds: float) -> None:
        """Advance the rank's time, without the overhead of a kernel call: all steps are one compiled loop."""
        if METER.get() is None:
            return
        rank = self._comm.owner
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
