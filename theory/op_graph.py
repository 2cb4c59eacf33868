"""The op graph of a given schedule: where each op stands, what it needs there, and who waits for whom for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from algorithms.parts.pipeline.ops import Op, Overlapped, needs


def gradients(lists: Sequence[Sequence[Op]]) -> dict[Op, list[Op]]:
    """What an update needs that several ranks do together: from each of them its last backward before it.

    ValueError if there is none.
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
    """The ops of `lists` (one list per rank) and their needs."""

    def __init__(self, lists: Sequence[Sequence[Op]]):
        self.lists = lists
        self.place = {op: (rank, n) for rank, ops in enumerate(lists) for n, op in enumerate(ops)}
        self.last = max((op.stage for op in self.place), default=0)
        self.gradients = gradients(lists)

    def needs(self, op: Op) -> list[Op]:
        """What must be done before `op`, by the names it has in the lists."""
        return [self._named(*need) for need in needs(op, self.last)] + self.gradients.get(op, [])

    def together(self, rank: int, n: int) -> range:
        """The positions of the ops that are done together with the n-th of `rank`."""
        ops, first = self.lists[rank], n
        while first and type(ops[first - 1]) is Overlapped:
            first -= 1
        while n + 1 < len(ops) and type(ops[n]) is Overlapped:
            n += 1
        return range(first, n + 1)

    def stuck(self, reached: Sequence[int]) -> str:
        """Why nobody goes on where rank r has done reached[r] ops: a circle of waiting, or an op that nobody does."""
        rank = next(rank for rank, ops in enumerate(self.lists) if reached[rank] < len(ops))
        waits: dict[int, str] = {}  # by rank, in the order of who waits for whom
        while rank not in waits:
            op, need = self._unmet(rank, reached)
            on = self.place[need][0] if need in self.place else None
            waits[rank] = f"rank {rank} at {op} waits for {need} " + (
                "that nobody does" if on is None else f"of rank {on}"
            )
            if on is None:
                return f"the schedule is stuck: {waits[rank]}."
            rank = on
        ranks = list(waits)
        circle = [waits[r] for r in ranks[ranks.index(rank) :]]
        return f"the schedule is stuck: {', '.join(circle)}."

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
