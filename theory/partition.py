"""The result of a partitioner: stages, their expected speed, and the table from which they were read."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple


class PlannedStage(NamedTuple):
    """Layers first..last on `replicas` workers. On a higher level, each worker is a machine with stages `inside`."""

    first: int
    last: int
    replicas: int
    inside: tuple[PlannedStage, ...] = ()


class Cell(NamedTuple):
    """An entry of the table: the best plan for the layers first..last on `workers` workers."""

    first: int
    last: int
    workers: int
    period: float  # s; inf if impossible
    cut: int | None = None  # the last layer before the last stage; None if it is the only one
    before: int = 0  # workers of the stages before
    replicas: int = 0  # of the last stage


@dataclass(frozen=True)
class Partition:
    """A plan for a pipeline: where to cut the model, and how fast the result should be."""

    stages: tuple[PlannedStage, ...]
    period: float  # s per mini-batch, once the pipeline is full
    alone: float  # s per mini-batch on one worker
    table: tuple[Cell, ...] = ()  # of the highest level
    chunks: int = 0  # micro-batches of a step that ends in a flush, whose length is then the period; 0: no flush

    @property
    def name(self) -> str:
        """The number of replicas of each stage, such as "2-1-1"."""
        return "-".join(str(stage.replicas) for stage in self.stages)

    @property
    def speed_up(self) -> float:
        return self.alone / self.period

    @property
    def in_flight(self) -> int:
        """The number of mini-batches that each replica of the first stage may have in flight (NOAM)."""
        return ceil(sum(stage.replicas for stage in self.stages) / self.stages[0].replicas)

    @property
    def warm_up(self) -> tuple[int, ...]:
        """The number of forwards by which a replica of each stage runs ahead of its backwards.

        Replicas take turns with the mini-batches of a full pipeline, but share each micro-batch of a step with a flush.
        """
        workers = [stage.replicas for stage in self.stages]
        if self.chunks:
            return tuple(min(self.chunks, len(workers) - s) - 1 for s in range(len(workers)))
        return tuple((sum(workers[s:]) - 1) // r for s, r in enumerate(workers))
