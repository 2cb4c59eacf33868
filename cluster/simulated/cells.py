"""Cells of simulated shared memory, and what happens when two additions to one cell overlap.

A cell is the unit of a load and a store: one coordinate, or a piece of a vector that is always accessed as a whole. A
*conflict* is a cell that other ranks wrote after a step had read it: the step used a stale value. A *lost addition* is
one whose load and store overlap another rank's on the same cell: the addition stored first is overwritten, unless
additions are atomic. Let r be the time from load to store, T the time of a step, and p the probability that a step
accesses the cell. Each of the N - 1 other ranks then overwrites, or is overwritten, about p r / T of the time:

    lost = (N - 1) p r / T        conflicts: the same, with r from read to write

Here r is the time of one cell, not that of all writes of a step. A core performs its stores in order, and each store
waits until its cache line has been taken from the other core. So r is `TAKEN` for the numbers in the first line that a
sparse step accesses, twice that for the second line, and so on.

It is different if threads access all lines in every step, as with dense gradients. They wait for each other's lines,
and are probably coupled: side by side for a long time, or not at all. The share that two real threads lose then hardly
depends on the length of the vector: it is 4 to 14 % on average over all sessions, so r is `MEETING`, a constant
fraction of T. Single sessions differ by a factor of up to forty: the same bowl of 100 numbers lost 0.7 % in one and
28 % in another.

`TAKEN` and `MEETING` were fitted to the additions that two real threads lost (`tests/benchmarks/lost_additions.py`),
on cores that pass a line in 53 to 290 ns. With sparse rows of 4 to 32 lines, the threads lost 0.6 to 1.1 times what is
simulated on average over all sessions, and 0.29 to 2.0 times in single sessions; with steps that access all lines, 0.6
to 1.7 times. The model leaves out how far apart cores are, and that a step takes longer because lines travel.
Source: threads that read and write in this way are those of Niu, Recht, Re & Wright, NIPS 2011, who assume atomic
additions; the probability is elementary.
"""

import numpy as np

from kernels.compiled import on_disk

LINE = 64  # bytes transferred for a single coordinate: a cache line
MEETING = 0.085  # time from load to store in a step that accesses all cache lines, as a fraction of its time so far
TAKEN = 4.3e-9  # s that each cache line of a sparse step adds to the time from load to store, for later lines too


class VectorPiece:
    """A piece of a vector that is accessed as a whole. `before` holds its numbers before the last addition."""

    __slots__ = ("before", "loaded", "nbytes", "numbers", "place", "stored", "vector", "written")

    def __init__(self, vector: np.ndarray, before: np.ndarray, place: slice):
        self.place, self.vector, self.before = place, vector[place], before[place]
        self.numbers, self.nbytes = self.vector.size, self.vector.nbytes
        self.written, self.loaded, self.stored = 0, -np.inf, -np.inf  # the number of writes; the last load and store, s

    def read(self, *copies: np.ndarray) -> int:
        """Copy the piece into a step's vectors. Return its version, for `count`."""
        for copy in copies:
            copy[self.place] = self.vector
        return self.written

    def count(self, version: int) -> int:
        """Count a write. Return how many numbers others have written since this version was read."""
        conflicts = self.numbers * (self.written != version)
        self.written += 1
        return conflicts

    def add(self, old: np.ndarray, new: np.ndarray) -> None:
        """Add `new - old` as one indivisible operation."""
        change(self.vector, old, new)

    def store(self, old: np.ndarray, new: np.ndarray, began: float, read: float, writing: float, stored: float) -> int:
        """Add `new - old`. Return the number of additions lost, this rank's or others'.

        The other arguments are times of the step, in s: when it began, when it had read everything, when it began to
        write this cell, and when it stored it.
        """
        loaded = max(stored - MEETING * (stored - began), read)
        meet = self.loaded < stored and self.stored > loaded
        last = self.stored < stored
        store_piece(self.vector, self.before, old, new, meet, last)
        if last:
            self.loaded, self.stored = loaded, stored
        return self.numbers * meet


class Additions:
    """The additions to each coordinate: their number, and the times of the last load and store, in s."""

    def __init__(self, coordinates: int):
        self.written = np.zeros(coordinates, np.int64)
        self.loaded, self.stored = np.full((2, coordinates), -np.inf)


class Coordinates:
    """The coordinates of a vector at `place`, an index array. They are stored one after the other."""

    def __init__(self, vector: np.ndarray, before: np.ndarray, place: np.ndarray, additions: Additions):
        self.place, self.vector, self.before, self._additions = place, vector, before, additions
        self.numbers, self.nbytes = len(place), LINE * len(place)

    def read(self, *copies: np.ndarray) -> np.ndarray:
        """Copy the coordinates into a step's vectors. Return their versions, for `count`."""
        values = self.vector[self.place]
        for copy in copies:
            copy[self.place] = values
        return self._additions.written[self.place]

    def count(self, version: np.ndarray) -> int:
        """Count a write. Return how many coordinates others have written since these versions were read."""
        conflicts = int((self._additions.written[self.place] != version).sum())
        self._additions.written[self.place] += 1
        return conflicts

    def add(self, old: np.ndarray, new: np.ndarray) -> None:
        """Add `new - old` as one indivisible operation."""
        sums = self.vector[self.place]
        change(sums, old, new)
        self.vector[self.place] = sums

    def store(self, old: np.ndarray, new: np.ndarray, began: float, read: float, writing: float, stored: float) -> int:
        """Add `new - old`. Return the number of additions lost, this rank's or others'. See VectorPiece.store."""
        place, additions = self.place, self._additions
        every = np.linspace(writing, stored, self.numbers + 1)[1:]
        loaded = np.maximum(every - self._window(every, began), read)
        meet = (additions.loaded[place] < every) & (additions.stored[place] > loaded)
        last = additions.stored[place] < every
        now, before = self.vector[place], self.before[place]
        base = np.where(meet & last, before, now)  # the other rank's addition is overwritten
        sums = base.copy()
        change(sums, old, new)
        self.before[place] = np.where(last, base, np.where(meet, before, before + (new - old)))
        self.vector[place] = np.where(meet & ~last, now, sums)  # or this rank's
        additions.loaded[place] = np.where(last, loaded, additions.loaded[place])
        additions.stored[place] = np.where(last, every, additions.stored[place])
        return int(meet.sum())

    def _window(self, stored: np.ndarray, began: float) -> np.ndarray:
        """Return the time from load to store of each coordinate, in s."""
        lines = self.place // (LINE // self.vector.itemsize)
        taken = np.cumsum(np.diff(lines, prepend=-1) != 0)
        if taken[-1] * LINE >= self.vector.nbytes:
            return MEETING * (stored - began)
        return TAKEN * taken


def _change(now, old, new):
    now[:] = np.where(now == old, new, now + (new - old))


@on_disk(_change)
def change(now, old, new):
    """Add `new - old` to `now`, all (n,). Where `now` equals `old`, set it to exactly `new`."""
    for v in range(now.size):
        now[v] = new[v] if now[v] == old[v] else now[v] + (new[v] - old[v])


@on_disk()
def store_piece(vector, before, old, new, meet, last):
    """Add `new - old` to `vector`, all (n,). `before` holds the vector before the last addition.

    If the two additions overlap (`meet`), one is lost: the other one if this one is stored `last`, else this one.
    """
    if last and meet:
        vector[:] = before
    elif last:
        before[:] = vector
    elif meet:
        return
    else:  # the other addition is loaded after this one has been stored, so it adds to it
        for v in range(before.size):
            before[v] += new[v] - old[v]
    change(vector, old, new)
