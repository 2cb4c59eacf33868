"""Cells of simulated shared memory: what becomes of two additions to one that meet.

A cell is what is loaded and stored as one: a coordinate, or a piece of a vector that is touched as a whole. One that
others have written since a step read it is a conflict: the step was computed from a stale value. An addition is lost
where the load and store of one cell meet those of another rank: the one stored first is overwritten, unless additions
are atomic. So with r the time from load to store, T that of a step, and p the chance that a step touches the cell, each
of the N - 1 others overwrites, or is overwritten, about p r / T of the time,

    lost = (N - 1) p r / T        conflicts: the same with r from read to write

and not a whole step's writes over T. A core makes its stores in order, and each waits until its cache line has been
taken from the other core: so r is `TAKEN` for the numbers in the first line that a sparse step touches, twice that in
the second, and so on.

Not so where threads touch all lines in each step, as with dense gradients. They wait for each other's lines, and are
probably coupled: side by side for long, or not at all. What two real threads lose then hardly depends on the length
of the vector, 4 to 14 % in the mean of all sittings, so r is `MEETING`, a constant share of T. Single sittings are up
to forty times apart: the same bowl of 100 numbers lost 0.7 and 28 %.

`TAKEN` and `MEETING` were fitted to what two real threads lose, `tests/benchmarks/lost_additions.py`, on cores that
pass a line in 53 to 290 ns. In the mean of all sittings they lost 0.6 to 1.1 times what is simulated with sparse rows
of 4 to 32 lines, 0.29 to 2.0 times in single ones, and 0.6 to 1.7 times with steps that touch all lines. Left out is
how far apart cores are, and that a step takes longer because lines travel.
Source: threads that read and write so are those of Niu, Recht, Re & Wright, NIPS 2011, which assumes atomic additions;
the probability is elementary.
"""

from __future__ import annotations

import numpy as np

from kernels.compiled import on_disk

LINE = 64  # bytes transferred for a single coordinate: a cache line
MEETING = 0.085  # of its time so far, from load to store in a step that touches all cache lines
TAKEN = 4.3e-9  # s that each cache line which a step touches adds to the time from load to store, from there on


class VectorPiece:
    """A stretch of a vector that is touched as a whole; `before` is what its numbers were before the last addition."""

    __slots__ = ("before", "loaded", "nbytes", "numbers", "place", "stored", "vector", "written")

    def __init__(self, vector: np.ndarray, before: np.ndarray, place: slice):
        self.place, self.vector, self.before = place, vector[place], before[place]
        self.numbers, self.nbytes = self.vector.size, self.vector.nbytes
        self.written, self.loaded, self.stored = 0, -np.inf, -np.inf  # how often; the last load and store, s

    def read(self, *copies: np.ndarray) -> int:
        """Copy it into vectors of a step; return its version, for `count`."""
        for copy in copies:
            copy[self.place] = self.vector
        return self.written

    def count(self, version: int) -> int:
        """Count a write; return how many numbers others had written since this version was read."""
        conflicts = self.numbers * (self.written != version)
        self.written += 1
        return conflicts

    def add(self, old: np.ndarray, new: np.ndarray) -> None:
        """Add new - old, while nobody else does."""
        change(self.vector, old, new)

    def store(self, old: np.ndarray, new: np.ndarray, began: float, read: float, writing: float, stored: float) -> int:
        """Add new - old; return how many additions, own or others', are lost.

        Times of the step, s: it began, had read, began to write this cell, and stored it.
        """
        loaded = max(stored - MEETING * (stored - began), read)
        meet = self.loaded < stored and self.stored > loaded
        last = self.stored < stored
        store_piece(self.vector, self.before, old, new, meet, last)
        if last:
            self.loaded, self.stored = loaded, stored
        return self.numbers * meet


class Additions:
    """Of each coordinate how many there were, and when the last one was loaded and stored, s."""

    def __init__(self, coordinates: int):
        self.written = np.zeros(coordinates, np.int64)
        self.loaded, self.stored = np.full((2, coordinates), -np.inf)


class Coordinates:
    """The coordinates `place` of a vector, an index array; they are stored one after the other."""

    def __init__(self, vector: np.ndarray, before: np.ndarray, place: np.ndarray, additions: Additions):
        self.place, self.vector, self.before, self._additions = place, vector, before, additions
        self.numbers, self.nbytes = len(place), LINE * len(place)

    def read(self, *copies: np.ndarray) -> np.ndarray:
        """Copy them into vectors of a step; return their versions, for `count`."""
        values = self.vector[self.place]
        for copy in copies:
            copy[self.place] = values
        return self._additions.written[self.place]

    def count(self, version: np.ndarray) -> int:
        """Count a write; return how many of them others had written since these versions were read."""
        conflicts = int((self._additions.written[self.place] != version).sum())
        self._additions.written[self.place] += 1
        return conflicts

    def add(self, old: np.ndarray, new: np.ndarray) -> None:
        """Add new - old, while nobody else does."""
        sums = self.vector[self.place]
        change(sums, old, new)
        self.vector[self.place] = sums

    def store(self, old: np.ndarray, new: np.ndarray, began: float, read: float, writing: float, stored: float) -> int:
        """Add new - old; return how many additions, own or others', are lost. Times as those of a piece."""
        place, additions = self.place, self._additions
        every = np.linspace(writing, stored, self.numbers + 1)[1:]
        loaded = np.maximum(every - self._window(every, began), read)
        meet = (additions.loaded[place] < every) & (additions.stored[place] > loaded)
        last = additions.stored[place] < every
        now, before = self.vector[place], self.before[place]
        base = np.where(meet & last, before, now)  # theirs is overwritten
        sums = base.copy()
        change(sums, old, new)
        self.before[place] = np.where(last, base, np.where(meet, before, before + (new - old)))
        self.vector[place] = np.where(meet & ~last, now, sums)  # or ours
        additions.loaded[place] = np.where(last, loaded, additions.loaded[place])
        additions.stored[place] = np.where(last, every, additions.stored[place])
        return int(meet.sum())

    def _window(self, stored: np.ndarray, began: float) -> np.ndarray:
        """Return the time from load to store, s, of each."""
        lines = self.place // (LINE // self.vector.itemsize)
        taken = np.cumsum(np.diff(lines, prepend=-1) != 0)
        if taken[-1] * LINE >= self.vector.nbytes:
            return MEETING * (stored - began)
        return TAKEN * taken


@on_disk()
def change(now, old, new):
    """Set now to now + (new - old), vectors (n,); exactly to new where now equals old."""
    for v in range(now.size):
        now[v] = new[v] if now[v] == old[v] else now[v] + (new[v] - old[v])


@on_disk()
def store_piece(vector, before, old, new, meet, last):
    """Add new - old to vector, (n,) each, where the last addition to it was made to `before`.

    If both meet one is lost: the other one if this is stored last, this one otherwise.
    """
    if last and meet:
        vector[:] = before
    elif last:
        before[:] = vector
    elif meet:
        return
    else:  # theirs, which is loaded when this has been stored, adds to it
        for v in range(before.size):
            before[v] += new[v] - old[v]
    change(vector, old, new)
