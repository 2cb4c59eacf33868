"""DAPPLE's planner: stages for a step with a flush, which the pipeline has to be filled and drained for.

PipeDream's partitioner asks for the period of a full pipeline. A step of M micro-batches takes longer than M periods:

    L = (M-1) max t  +  sum t  +  max over stages of max(0, R_s - (b_0 + ... + b_{s-1}))

where t runs over stages and the links between them, for one micro-batch: a stage of r replicas, which share each
micro-batch out, takes (f + b) / r, a link 2 a / B. R_s = 2 (r-1)/r w / B is the ring that sums a stage's gradients; it
hides behind the backwards of the stages before it, which go on meanwhile. The more micro-batches, the more the slowest
stage counts, and the fewer, the less a cut is worth: with M = 1 all workers best share all layers, unless the weights
are too many or the memory is too small.

Plans grow stage by stage from the first layer. Of those that reach the same layer with as many workers, all are kept
that no other beats in the slowest t, the sum, what is exposed of the rings and what hides those to come; unless they
can no more come up to a plan that is known already, which is made of what looks best in every place.

Source: Fan et al. (DAPPLE), PPoPP 2021, arXiv:2007.01045; the form of its program, links as stages of their own.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import inf
from typing import NamedTuple

from theory.partition_plan import Plan, Stage
from theory.profile import Profile, ranges


class Partial(NamedTuple):
    """A plan for the first layers."""

    slowest: float
    total: float
    exposed: float
    hiding: float
    stages: tuple[Stage, ...] = ()

    def beats(self, other: Partial) -> bool:
        """Whether it is at least as good in everything."""
        return (
            self.slowest <= other.slowest
            and self.total <= other.total
            and self.exposed <= other.exposed
            and self.hiding >= other.hiding
        )


def partition_step(
    profile: Profile, workers: int, bandwidth: float, chunks: int, memory: float | None = None, straight: bool = False
) -> Plan:
    """The quickest step of `chunks` micro-batches on `workers`, with so many bytes per second between them.

    `memory` is what a worker has for its weights and the activations of the micro-batches under way, in bytes: no more
    than there are workers from its stage on. The profile is that of a mini-batch; the plan's period is L.
    ValueError, in one sentence, if there is no plan.
    """
    layers = len(profile.layers)
    _refuse(layers, workers, bandwidth, chunks, straight)
    times, back, weights, kept = map(ranges, (profile.times, profile.backward, profile.weights, profile.activations))

    def held(first, last, replicas, later):
        share = min(chunks, later // replicas + 1) / chunks / replicas
        return weights[first, last] + kept[first, last] * share

    def least():
        """Memory of the plan that needs least."""
        need = {(0, 0): 0.0}
        for end, used in product(range(1, layers + 1), range(1, workers + 1)):
            need[end, used] = min(
                max(held(first, end - 1, replicas, workers - used), need.get((first, used - replicas), inf))
                for first, replicas in product(range(end), range(1, 2 if straight else used + 1))
            )
        return need[layers, workers]

    def grown(plan, first, last, replicas):
        link = 2 * profile.activations[first - 1] / bandwidth / chunks if first else 0.0
        time = times[first, last] / replicas / chunks
        ring = 2 * (replicas - 1) / replicas * weights[first, last] / bandwidth
        return Partial(
            max(plan.slowest, link, time),
            plan.total + link + time,
            max(plan.exposed, ring - plan.hiding),
            plan.hiding + back[first, last] / replicas / chunks,
            (*plan.stages, Stage(first, last, replicas)),
        )

    def length(plan, rest=0.0):
        """L of a plan; or what it comes to at least if each worker that is left has `rest` seconds to do."""
        return (chunks - 1) * max(plan.slowest, rest) + plan.total + rest + plan.exposed

    def found(bound, width):
        """Per layer and workers the unbeaten plans that may still be shorter than `bound`, at most so many."""
        best: dict[tuple[int, int], list[Partial]] = {(0, 0): [Partial(0.0, 0.0, 0.0, 0.0)]}
        for end in range(1, layers + 1):
            for used in range(1, workers + 1 if end == layers else workers):
                rest = times[end, layers - 1] / (workers - used) / chunks if end < layers else 0.0
                plans: list[Partial] = []
                for first in range(end):
                    for replicas in range(1, 2 if straight else used + 1):
                        if memory is None or held(first, end - 1, replicas, workers - used) <= memory:
                            for before in best.get((first, used - replicas), ()):
                                plan = grown(before, first, end - 1, replicas)
                                if length(plan, rest) < bound:
                                    keep(plans, plan)
                best[end, used] = sorted(plans, key=partial(length, rest=rest))[:width]
        return best[layers, workers]

    first = found(inf, 1)  # in each place only what looks best
    if not first and memory is not None and not (first := found(inf, None)):
        raise ValueError(
            f"no plan for {workers} workers fits {memory:g} bytes each; the least that does is {least():g}."
        )
    plan = min([*found(length(first[0]), None), *first], key=length)
    return Plan(plan.stages, length(plan), sum(profile.times), ())


def keep(found: list[Partial], plan: Partial) -> None:
    """Add a plan to those that none beats, and drop those that it beats. Of equal ones the first stays."""
    if not any(other.beats(plan) for other in found):
        found[:] = [other for other in found if not plan.beats(other)]
        found.append(plan)


def _refuse(layers: int, workers: int, bandwidth: float, chunks: int, straight: bool) -> None:
    if workers < 1 or chunks < 1:
        raise ValueError(f"{chunks} micro-batches on {workers} workers are no step; use at least 1 of each.")
    if not bandwidth > 0:
        raise ValueError(f"links of {bandwidth} bytes per second carry nothing; use more than 0.")
    if straight and workers > layers:
        raise ValueError(f"{workers} workers without replicas do not fit {layers} layers; use at most {layers}.")
