"""Portions: a batch in small parts, given to whoever is free, each counted exactly once.

    undone -> given -> kept by a worker -> handed in -> in the sum

A worker that finishes a portion keeps its gradient, and hands in what it has kept every few portions, or after each
when there is little left. Near the end free workers are given what others have been given before them; the first to
finish counts. What a lost worker has not seen into the sum is undone again.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2 (Sandblaster's load balancing).
"""

from __future__ import annotations


class Portions:
    """Who has which of `count` portions.

    A worker hands in to all of `shards` after `every` portions, and after each when at most `few` are undone; `backups`
    allows duplicates.
    """

    def __init__(self, count: int, every: int = 4, few: int = 1, backups: bool = True, shards=(0,)):
        self.count, self.every, self.few, self.backups, self.shards = count, every, few, backups, shards
        self.undone = list(range(count - 1, -1, -1))  # the next one last
        self.given: dict[int, int] = {}  # worker -> the portion it is computing
        self.kept: dict[int, set[int]] = {}  # worker -> finished, and not handed in
        self.handed: dict[int, set[int]] = {}  # worker -> on the way into the sum
        self.missing: dict[int, set[int]] = {}  # worker -> shards that have not got what it handed in
        self.summed: set[int] = set()
        self.wasted = 0  # portions that were computed for nothing

    @property
    def over(self) -> bool:
        """Whether every portion is in the sum."""
        return len(self.summed) == self.count

    @property
    def finished(self) -> set[int]:
        """Portions that have been computed and are not lost."""
        return self.summed.union(*self.kept.values(), *self.handed.values())

    def give(self, worker: int) -> int | None:
        """A portion for a free worker: an undone one, or one that others have not finished; None if there is none."""
        portion = self.undone.pop() if self.undone else None
        if portion is None and self.backups:
            running = [p for p in self.given.values() if p not in self.finished]
            portion = min(running, key=running.count, default=None)  # the one fewest are at
        if portion is not None:
            self.given[worker] = portion
        return portion

    def finish(self, worker: int) -> int | None:
        """The worker has computed what it was given: the portion if that counts, None if another was quicker."""
        portion = self.given.pop(worker)
        if portion in self.finished:
            self.wasted += 1
            return None
        self.kept.setdefault(worker, set()).add(portion)
        return portion

    def hand_in(self, worker: int) -> bool:
        """Whether the worker is to hand in now what it has kept; it is on its way then."""
        kept = self.kept.get(worker, set())
        due = bool(kept) and worker not in self.handed and (len(kept) >= self.every or len(self.undone) <= self.few)
        if due:
            self.handed[worker], self.missing[worker] = self.kept.pop(worker), set(self.shards)
        return due

    def arrive(self, worker: int, shard: int = 0) -> bool:
        """A shard has what the worker handed in; once all have it, which is told, it is in the sum."""
        self.missing.get(worker, set()).discard(shard)
        whole = worker in self.handed and not self.missing[worker]
        if whole:
            self.summed |= self.handed.pop(worker)
        return whole

    def lose(self, worker: int) -> None:
        """The worker is lost, with all that is not in the sum."""
        lost = {*self.kept.pop(worker, ()), *self.handed.pop(worker, ())}
        if worker in self.given:
            lost.add(self.given.pop(worker))
        lost -= self.finished.union(self.given.values(), self.undone)
        self.undone += sorted(lost, reverse=True)
