"""DAPPLE's planner: stages for a step with a flush, in which the pipeline fills and drains.

PipeDream's partitioner minimises the period of a full pipeline. A step of M micro-batches takes longer than M periods:

    L = (M-1) max t  +  sum t  +  max over stages of max(0, R_s - (b_0 + ... + b_{s-1}))

where t runs over stages and the links between them, for one micro-batch: a stage of r replicas, which split every
micro-batch among them, takes (f + b) / r, a link 2 a / B. R_s = 2 (r-1)/r w / B is the ring that sums a stage's
gradients; it hides behind the backwards of the stages before it, which run in the meantime. The more micro-batches, the
more the slowest stage counts; the fewer, the less a cut is worth. With M = 1 it is best if all workers share all
layers, unless the weights are too large or the memory is too small.

For 1F1B with free links, L is an upper bound, provided that a backward takes the same multiple of a forward on all
stages: equal stages take L, uneven ones less, down to 0.74 L in trials. If links take time, 1F1B may take longer than
L, because it has few micro-batches in flight; likewise if some stages are slow forward and others backward.

As in 1F1B, stage s of S holds the activations of min(M, S-s) micro-batches, and each of r replicas holds 1/r of them.

Plans grow stage by stage from the last layer (branch and bound). Among plans that reach the same layer with the same
number of workers, the planner keeps those that no other dominates in the slowest t, the sum, the exposed part of the
rings and the number of stages (more stages mean more memory for the stages before them). It drops plans that can no
longer beat a greedy plan, which is found first.

Source: Fan et al. (DAPPLE), PPoPP 2021, arXiv:2007.01045, in the form of its program, which counts links as stages of
their own.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import inf
from typing import NamedTuple

from theory.partition import Partition, PlannedStage
from theory.profile import Profile, ranges


class PartialPlan(NamedTuple):
    """A plan for the last layers of the chain."""

    slowest: float = 0.0
    total: float = 0.0
    exposed: float = 0.0
    stages: tuple[PlannedStage, ...] = ()

    def dominates(self, other: PartialPlan) -> bool:
        """Return whether this plan is at least as good as `other` in every respect."""
        return (
            self.slowest <= other.slowest
            and self.total <= other.total
            and self.exposed <= other.exposed
            and len(self.stages) <= len(other.stages)
        )


def ring(weights: float, replicas: int, bandwidth: float) -> float:
    """Return how long a stage's replicas take to sum the gradients of its weights, in s; `weights` is in bytes."""
    return 2 * (replicas - 1) / replicas * weights / bandwidth


def partition_step(
    profile: Profile, workers: int, bandwidth: float, chunks: int, memory: float | None = None, straight: bool = False
) -> Partition:
    """Return the plan with the fastest step of `chunks` micro-batches on `workers` workers.

    `profile` describes a mini-batch, `bandwidth` is in bytes per second, and `memory` is the number of bytes a worker
    has for its weights and the activations of the micro-batches in flight. `straight` forbids replicas. The plan's
    period is L. Raise ValueError if there is no plan.
    """
    layers = len(profile.layers)
    _check(layers, workers, bandwidth, chunks, straight)
    times, back, weights, kept = map(ranges, (profile.times, profile.backward, profile.weights, profile.activations))
    limit = inf if memory is None else memory

    def held(first, last, replicas, later):
        """Return the memory, in bytes, that each worker of a stage needs if `later` stages follow it."""
        return weights[first, last] + kept[first, last] * min(chunks, later + 1) / chunks / replicas

    def least():
        """Return the smallest number of bytes per worker for which there is a plan."""
        need = {(layers, 0, 0): 0.0}  # by first layer, workers and stages
        for first, used in product(reversed(range(layers)), range(1, workers + 1)):
            for last, replicas, later in product(
                range(first, layers), range(1, 2 if straight else used + 1), range(layers)
            ):
                if (last + 1, used - replicas, later) in need:
                    rest = need[last + 1, used - replicas, later]
                    most = max(rest, held(first, last, replicas, later))
                    need[first, used, later + 1] = min(most, need.get((first, used, later + 1), inf))
        return min(need.get((0, workers, stages), inf) for stages in range(1, layers + 1))

    def grow(plan, first, last, replicas):
        """Return `plan` with a stage of the layers first..last in front of it."""
        link = 2 * profile.activations[last] / bandwidth / chunks if plan.stages else 0.0
        time = times[first, last] / replicas / chunks
        return PartialPlan(
            max(plan.slowest, link, time),
            plan.total + link + time,
            max(plan.exposed - back[first, last] / replicas / chunks, ring(weights[first, last], replicas, bandwidth)),
            (PlannedStage(first, last, replicas), *plan.stages),
        )

    def length(plan, rest=0.0):
        """Return L, the time of a plan's step. For a partial plan, this is a lower bound: each of the remaining workers
        still has `rest` seconds of work.
        """
        return (chunks - 1) * max(plan.slowest, rest) + plan.total + max(rest, plan.exposed)

    def search(bound, width):
        """Return the Pareto-optimal plans for all layers whose step takes less than `bound`. A beam search keeps the
        `width` best plans at every step; if `width` is None, it keeps all.
        """
        best: dict[tuple[int, int], list[PartialPlan]] = {(layers, 0): [PartialPlan()]}
        for first in reversed(range(layers)):
            for used in range(1, workers if first else workers + 1):
                rest = times[0, first - 1] / (workers - used) / chunks if first else 0.0
                plans: list[PartialPlan] = []
                for last, replicas in product(range(first, layers), range(1, 2 if straight else used + 1)):
                    for after in best.get((last + 1, used - replicas), ()):
                        if held(first, last, replicas, len(after.stages)) <= limit:
                            plan = grow(after, first, last, replicas)
                            if length(plan, rest) < bound:
                                keep(plans, plan)
                best[first, used] = sorted(plans, key=partial(length, rest=rest))[:width]
        return best[0, workers]

    first = search(inf, 1)  # greedy: keeps only the best plan at every step
    if not first and memory is not None and not (first := search(inf, None)):
        raise ValueError(
            f"no plan for {workers} workers fits into {memory:g} bytes each; the smallest plan needs {least():g}."
        )
    plan = min([*search(length(first[0]), None), *first], key=length)
    return Partition(plan.stages, length(plan), sum(profile.times), chunks=chunks)


def keep(found: list[PartialPlan], plan: PartialPlan) -> None:
    """Add `plan` to `found` unless a plan there dominates it, and drop those that it dominates. The first wins ties."""
    if not any(other.dominates(plan) for other in found):
        found[:] = [other for other in found if not plan.dominates(other)]
        found.append(plan)


def _check(layers: int, workers: int, bandwidth: float, chunks: int, straight: bool) -> None:
    if workers < 1 or chunks < 1:
        raise ValueError(
            f"a step needs micro-batches and workers, not {chunks} micro-batches on {workers} workers; use at least 1 "
            "of each."
        )
    if not bandwidth > 0:
        raise ValueError(f"bandwidth: {bandwidth} bytes per second would carry nothing; use more than 0.")
    if straight and workers > layers:
        raise ValueError(
            f"{workers} workers without replicas need as many layers, but there are {layers}; use at most {layers} "
            "workers."
        )
