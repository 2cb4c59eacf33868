"""The op graph of a schedule: the rank and position of each op, the ops it needs, and the ranks in a deadlock."""

from collections import Counter
from collections.abc import Sequence

from algorithms.parts.pipeline.ops import Op, Overlapped, ScheduleError, needs


def gradients(lists: Sequence[Sequence[Op]]) -> dict[Op, list[Op]]:
    """Return the ops that each shared update needs: from every participating rank, its last backward before the update.

    Raise ValueError if a rank has none.
    """
    shared = {op for op, ranks in Counter(op for ops in lists for op in ops if op.kind == "U").items() if ranks > 1}
    found: dict[Op, list[Op]] = {update: [] for update in shared}
    for ops in lists if shared else ():
        latest = {}
        for op in ops:
            if op.kind in "BW":
                latest[op.stage] = op
            elif op in shared:
                if op.stage not in latest:
                    raise ValueError(f"{op} comes before any gradient of stage {op.stage} on one of its ranks.")
                found[op].append(latest.pop(op.stage))
    return found


class Graph:
    """The ops of `lists` (one list per rank) and their dependencies."""

    def __init__(self, lists: Sequence[Sequence[Op]]):
        self.lists = lists
        self.place = {op: (rank, n) for rank, ops in enumerate(lists) for n, op in enumerate(ops)}
        self.last = max((op.stage for op in self.place), default=0)
        self.gradients = gradients(lists)

    def needs(self, op: Op) -> list[Op]:
        """Return the ops, as the lists name them, that must be done before `op`."""
        return [self._named(*need) for need in needs(op, self.last)] + self.gradients.get(op, [])

    def together(self, rank: int, n: int) -> range:
        """Return the positions of the ops that are overlapped with the n-th op of `rank`, including the op itself."""
        ops, first = self.lists[rank], n
        while first and type(ops[first - 1]) is Overlapped:
            first -= 1
        while n + 1 < len(ops) and type(ops[n]) is Overlapped:
            n += 1
        return range(first, n + 1)

    def stuck(self, reached: Sequence[int]) -> ScheduleError:
        """Return an error that names the cycle of waiting ranks, or the missing op. Rank r has done reached[r] ops."""
        rank = next(rank for rank, ops in enumerate(self.lists) if reached[rank] < len(ops))
        waits: dict[int, str] = {}  # by rank, in the order in which each waits for the next
        at: dict[int, Op] = {}
        while rank not in waits:
            op, need = self._unmet(rank, reached)
            at[rank], on = op, self.place[need][0] if need in self.place else None
            waits[rank] = f"rank {rank} at {op} waits for {need} " + (
                "that nobody does" if on is None else f"of rank {on}"
            )
            if on is None:
                return ScheduleError(f"the schedule is stuck: {waits[rank]}.", op, rank)
            rank = on
        ranks = list(waits)
        cycle = [waits[r] for r in ranks[ranks.index(rank) :]]
        return ScheduleError(f"the schedule is stuck: {', '.join(cycle)}.", at[rank], rank)

    def _unmet(self, rank: int, reached: Sequence[int]) -> tuple[Op, Op]:
        for n in self.together(rank, reached[rank]):
            for need in self.needs(self.lists[rank][n]):
                on, position = self.place.get(need, (rank, n))
                if position >= reached[on]:
                    return self.lists[rank][n], need
        raise AssertionError("nothing is in the way")

    def _named(self, kind: str, stage: int, chunk: int) -> Op:
        split = Op("I", stage, chunk)
        return split if kind == "B" and split in self.place else Op(kind, stage, chunk)
