"""A plan expands a schedule over all ranks and mini-batches, and finds the other end of each message.

A schedule with a flush is the ops of one mini-batch, with an update at the end, and is repeated; one without is an
endless stream.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import accumulate
from math import inf, lcm

from algorithms.parts.pipeline.ops import Op, Overlapped, lists, rematerialise


class Flush:
    """A plan with a flush: the ops of all ranks for one mini-batch of `chunks` micro-batches."""

    def __init__(self, ops: list[list[Op]], chunks: int):
        self.ops, self.chunks = ops, chunks
        self._rank = {(op.stage, op.chunk): rank for rank, mine in enumerate(ops) for op in mine if op.kind == "F"}
        self.stages = 1 + max(stage for stage, _ in self._rank)
        self._groups = [list(_joined(mine)) for mine in ops]

    @classmethod
    @lru_cache(maxsize=64)  # every simulated rank asks for the same
    def of(
        cls, schedule: Callable, ranks: int, chunks: int, *, copies: int = 1, rematerialised: str = "none", **options
    ) -> Flush:
        """Return the plan of `schedule(rank, ranks, chunks, **options)`.

        `copies` of the pipeline, on ranks of their own, split the micro-batches among themselves and update together.
        Forwards are repeated (`rematerialised`) "early", as soon as possible, or "late", once the gradient has arrived.
        Raise ValueError if there is no such schedule.
        """
        for number, what in ((ranks, "workers"), (chunks, "micro-batches")):
            if number % copies:
                raise ValueError(
                    f"{copies} copies do not divide {number} {what}; use a number of copies that divides both workers "
                    "and micro-batches, or 1."
                )
        ops = []
        for copy in range(copies):
            first = copy * (chunks // copies)
            for mine in lists(schedule, ranks // copies, chunks // copies, **options):
                ops.append([op if op.kind == "U" else op._replace(chunk=first + op.chunk) for op in mine])
        if rematerialised != "none":
            ops = [list(rematerialise(mine, late=rematerialised == "late")) for mine in ops]
        return cls(ops, chunks)

    def ops_of(self, rank: int, batch: int) -> Iterator[list[Op]]:
        """Yield the ops of `rank` for mini-batch `batch`, in groups of overlapped ops; most groups have one op."""
        first = batch * self.chunks
        for group in self._groups[rank]:
            yield [Op(kind, stage, batch if kind == "U" else first + chunk) for kind, stage, chunk in group]

    def rank_of(self, stage: int, chunk: int) -> int:
        """Return the rank that processes this micro-batch on `stage`."""
        return self._rank[stage, chunk % self.chunks]

    def stages_of(self, rank: int) -> list[int]:
        return sorted({op.stage for op in self.ops[rank]})

    def losses_of(self, rank: int) -> int:
        """Return the number of losses, one per micro-batch, that `rank` computes in each mini-batch."""
        return sum(op.kind == "F" and op.stage == self.stages - 1 for op in self.ops[rank])

    def recomputed_forwards(self, rank: int) -> set[tuple[int, int]]:
        """Return (stage, micro-batch) of every forward that `rank` repeats for the backward."""
        return {(op.stage, op.chunk) for op in self.ops[rank] if op.kind == "R"}

    def elements_sent(self, shape) -> float:
        """Return the number of elements sent in a run of `shape` (`algorithm.Shape`).

        Counted are the activations and gradients that cross from rank to rank, and the rings that sum the gradients of
        shared stages. All shared stages are held by equally many ranks.
        """
        crossing = sum(
            shape.boundaries[stage]
            for (stage, chunk), rank in self._rank.items()
            if stage + 1 < self.stages and self._rank[stage + 1, chunk] != rank
        )
        copies = sum(len(self.stages_of(rank)) for rank in range(len(self.ops))) // self.stages
        return shape.steps * (2 * shape.batch // self.chunks * crossing + 2 * (copies - 1) * shape.parameters)

    @cached_property
    def shared_stages(self) -> list[int]:
        """The stages held by several ranks."""
        holders = [stage for rank in range(len(self.ops)) for stage in self.stages_of(rank)]
        return [stage for stage in range(self.stages) if holders.count(stage) > 1]


class Stream:
    """A plan without a flush: each rank has one stage and endless ops, with an update every `chunks` micro-batches.

    Stage s is on replicas[s] neighbouring ranks, which take turns: micro-batch b goes to replica b mod replicas[s], and
    after each turn they update together.
    """

    def __init__(self, replicas: Sequence[int], endless_ops_of: Callable[[int], Iterator[Op]], chunks: int = 1):
        self.replicas, self.endless_ops_of, self.chunks = tuple(replicas), endless_ops_of, chunks
        self.stages, self.round = len(self.replicas), lcm(*self.replicas)
        self.first = [0, *accumulate(self.replicas)]  # rank of each stage
        self.shared_stages = [stage for stage, ranks in enumerate(self.replicas) if ranks > 1]
        endless_ops_of(0)  # raises if there is no such schedule

    @classmethod
    def of(cls, schedule: Callable, ranks: int, chunks: int = 1, **options) -> Stream:
        """Return the plan of `schedule(rank, ranks, inf, **options)` with one stage per rank."""
        return cls([1] * ranks, partial(schedule, ranks=ranks, chunks=inf, **options), chunks)

    def rank_of(self, stage: int, chunk: int) -> int:
        """Return the rank that processes this micro-batch on `stage`."""
        return self.first[stage] + chunk % self.replicas[stage]

    def stages_of(self, rank: int) -> list[int]:
        return [bisect(self.first, rank) - 1]

    def losses_of(self, rank: int) -> int:
        """Return the number of losses, one per micro-batch, that the last rank computes in each mini-batch."""
        return self.chunks

    def recomputed_forwards(self, rank: int) -> set[tuple[int, int]]:
        """Return the empty set: no forward is repeated."""
        return set()

    def elements_sent(self, shape) -> float | None:
        """Return the number of elements sent in a run of `shape`. With replicas, return None: it depends on the stages'
        sizes.
        """
        return None if self.shared_stages else 2 * shape.steps * shape.batch * sum(shape.boundaries)


def _joined(ops: list[Op]) -> Iterator[list[Op]]:
    group = []
    for op in ops:
        group.append(op)
        if not isinstance(op, Overlapped):
            yield group
            group = []
