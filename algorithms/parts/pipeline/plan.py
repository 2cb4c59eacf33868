"""Plans: a schedule on all its ranks, mini-batch after mini-batch, and who does what of the rest.

A schedule with a flush says what to do for one mini-batch, with an update at the end; it is repeated. One without is an
endless stream. Whoever carries out a list must know who has the other end of each message: `rank_of`.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from math import lcm

from algorithms.parts.pipeline.ops import Op, Overlapped, rematerialise
from algorithms.pipelined.schedules import lists


class Flush:
    """The lists of all ranks for one mini-batch of `chunks` micro-batches."""

    def __init__(self, ops: list[list[Op]], chunks: int):
        self.ops, self.chunks = ops, chunks
        self._home = {(op.stage, op.chunk): rank for rank, mine in enumerate(ops) for op in mine if op.kind == "F"}
        self.stages = 1 + max(stage for stage, _ in self._home)
        self._groups = [list(_joined(mine)) for mine in ops]

    def of_batch(self, rank: int, batch: int) -> Iterator[list[Op]]:
        """What `rank` does for mini-batch `batch`: ops that are joined, mostly a single one."""
        first = batch * self.chunks
        for group in self._groups[rank]:
            yield [Op(kind, stage, batch if kind == "U" else first + chunk) for kind, stage, chunk in group]

    def rank_of(self, stage: int, chunk: int) -> int:
        """The rank that takes this micro-batch through `stage`."""
        return self._home[stage, chunk % self.chunks]

    def stages_of(self, rank: int) -> list[int]:
        """The stages that `rank` holds."""
        return sorted({op.stage for op in self.ops[rank]})

    def compared(self, rank: int) -> int:
        """How many micro-batches of a mini-batch `rank` compares with their targets."""
        return sum(op.kind == "F" and op.stage == self.stages - 1 for op in self.ops[rank])

    def recomputed(self, rank: int) -> set[tuple[int, int]]:
        """Stage and micro-batch of all that goes forward once more on `rank` before it goes backward."""
        return {(op.stage, op.chunk) for op in self.ops[rank] if op.kind == "R"}

    def elements_sent(self, shape) -> float:
        """Numbers moved in a run of `shape` (`declare.Shape`): what crosses from rank to rank, there and back, and the
        ring that sums the gradients of shared stages, all of them held by as many ranks."""
        crossing = sum(
            shape.boundaries[stage]
            for (stage, chunk), rank in self._home.items()
            if stage + 1 < self.stages and self._home[stage + 1, chunk] != rank
        )
        copies = sum(len(self.stages_of(rank)) for rank in range(len(self.ops))) // self.stages
        return shape.steps * (2 * shape.batch // self.chunks * crossing + 2 * (copies - 1) * shape.parameters)

    @cached_property
    def shared(self) -> list[int]:
        """The stages that several ranks hold."""
        holders = [stage for rank in range(len(self.ops)) for stage in self.stages_of(rank)]
        return [stage for stage in range(self.stages) if holders.count(stage) > 1]


class Stream:
    """An endless list for each rank, which holds one stage; an update every `chunks` micro-batches.

    Stage s is on replicas[s] ranks, neighbours, which take turns: micro-batch b goes to replica b mod replicas[s], and
    after each turn they update together.
    """

    def __init__(self, replicas: Sequence[int], of_rank: Callable[[int], Iterator[Op]], chunks: int = 1):
        self.replicas, self.of_rank, self.chunks = tuple(replicas), of_rank, chunks
        self.stages, self.round = len(self.replicas), lcm(*self.replicas)
        self.first = [0, *accumulate(self.replicas)]  # rank of each stage
        self.shared = [stage for stage, ranks in enumerate(self.replicas) if ranks > 1]
        of_rank(0)  # which may say that there is no such schedule

    def rank_of(self, stage: int, chunk: int) -> int:
        """The rank that takes this micro-batch through `stage`."""
        return self.first[stage] + chunk % self.replicas[stage]

    def stages_of(self, rank: int) -> list[int]:
        """The stage that `rank` holds."""
        return [bisect(self.first, rank) - 1]

    def compared(self, rank: int) -> int:
        """How many micro-batches of a mini-batch the last rank compares with their targets."""
        return self.chunks

    def recomputed(self, rank: int) -> set[tuple[int, int]]:
        """Nothing goes forward twice."""
        return set()


@lru_cache(maxsize=64)  # every simulated rank asks for the same
def flush(name: str, ranks: int, chunks: int, recompute: str = "none", copies: int = 1, **options) -> Flush:
    """The schedule of that name (`schedules.SCHEDULES`) with an update at the end of each mini-batch.

    recompute: "early" goes forward once more as soon as it can, "late" when the gradient has come. `copies` of the
    pipeline, on ranks of their own, share the micro-batches out and update together. ValueError if that does not go.
    """
    for number, what in ((ranks, "workers"), (chunks, "micro-batches")):
        if number % copies:
            raise ValueError(f"{copies} copies do not divide {number} {what}; use as many as divide both, or 1.")
    ops = []
    for copy in range(copies):
        first = copy * (chunks // copies)
        for mine in lists(name, ranks // copies, chunks // copies, **options):
            ops.append([op if op.kind == "U" else op._replace(chunk=first + op.chunk) for op in mine])
    if recompute != "none":
        ops = [list(rematerialise(mine, late=recompute == "late")) for mine in ops]
    return Flush(ops, chunks)


def _joined(ops: list[Op]) -> Iterator[list[Op]]:
    group = []
    for op in ops:
        group.append(op)
        if not isinstance(op, Overlapped):
            yield group
            group = []
