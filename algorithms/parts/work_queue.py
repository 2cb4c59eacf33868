"""A batch in small portions, assigned to workers as they become free, each counted exactly once.

    pending -> assigned -> computed (accumulated by a worker) -> pushed -> summed

A worker that completes a portion accumulates its gradient, and pushes the sum every few portions, or after each when
few are left. Near the end free workers are assigned portions that others are still computing; the first to finish
counts. Portions of a lost worker that are not in the sum become pending again.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2 (Sandblaster's load balancing).
"""


class WorkQueue:
    """An assignment of `count` portions to workers.

    A worker pushes to all of `shards` after `every` portions, and after each when at most `few` are pending; `backups`
    allows a portion to be assigned more than once.
    """

    def __init__(self, count: int, every: int = 4, few: int = 1, backups: bool = True, shards=(0,)):
        self.count, self.every, self.few, self.backups, self.shards = count, every, few, backups, shards
        self.pending = list(range(count - 1, -1, -1))  # the next one last
        self.assigned: dict[int, int] = {}  # worker -> the portion it is computing
        self.computed: dict[int, set[int]] = {}  # worker -> accumulated, and not pushed
        self.pushed: dict[int, set[int]] = {}  # worker -> in flight to the shards
        self.unconfirmed: dict[int, set[int]] = {}  # worker -> shards that its push has not reached
        self.summed: set[int] = set()
        self.duplicates = 0  # portions computed a second time, in vain

    @property
    def is_done(self) -> bool:
        """True if every portion is in the sum."""
        return len(self.summed) == self.count

    @property
    def finished_portions(self) -> set[int]:
        """The portions that have been computed and not lost."""
        return self.summed.union(*self.computed.values(), *self.pushed.values())

    def assign(self, worker: int) -> int | None:
        """Assign a portion to a free worker, and return the portion.

        It is pending or, with backups, one that another worker has not finished. If there is none, return None.
        """
        portion = self.pending.pop() if self.pending else None
        if portion is None and self.backups:
            running = [p for p in self.assigned.values() if p not in self.finished_portions]
            portion = min(running, key=running.count, default=None)  # the one that the fewest workers are computing
        if portion is not None:
            self.assigned[worker] = portion
        return portion

    def complete(self, worker: int) -> int | None:
        """Record that the worker is done. Return the portion it has computed, or None if another worker was faster."""
        portion = self.assigned.pop(worker)
        if portion in self.finished_portions:
            self.duplicates += 1
            return None
        self.computed.setdefault(worker, set()).add(portion)
        return portion

    def push_due(self, worker: int) -> bool:
        """Return True if the worker should push its accumulated portions now, and if so mark them as in flight."""
        ready = self.computed.get(worker, set())
        due = bool(ready) and worker not in self.pushed and (len(ready) >= self.every or len(self.pending) <= self.few)
        if due:
            self.pushed[worker], self.unconfirmed[worker] = self.computed.pop(worker), set(self.shards)
        return due

    def confirm(self, worker: int, shard: int = 0) -> bool:
        """Record that the worker's push has reached a shard. Return True once it has reached all shards and so is in
        the sum.
        """
        self.unconfirmed.get(worker, set()).discard(shard)
        whole = worker in self.pushed and not self.unconfirmed[worker]
        if whole:
            self.summed |= self.pushed.pop(worker)
        return whole

    def forget_worker(self, worker: int) -> None:
        """Make a lost worker's portions pending again, except those already in the sum."""
        lost = {*self.computed.pop(worker, ()), *self.pushed.pop(worker, ())}
        if worker in self.assigned:
            lost.add(self.assigned.pop(worker))
        lost -= self.finished_portions.union(self.assigned.values(), self.pending)
        self.pending += sorted(lost, reverse=True)
