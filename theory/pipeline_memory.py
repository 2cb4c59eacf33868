"""Memory and traffic of a schedule, counted along its lists; both are independent of the times.

    F   allocates the activations of a micro-batch      with recomputation:  F  allocates the inputs only
    B   frees them                                                           R  allocates the activations
    I   frees them, except what W needs; W frees that                        B  frees both

Source: the peaks of Huang et al. 2019 (GPipe), Narayanan et al. 2021 (1F1B), Qi et al. 2024 (split backward).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeVar

from algorithms.parts.pipeline.ops import Op
from theory.op_graph import Graph

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Sizes:
    """The sizes of each stage in bytes; all but the weights are those of one micro-batch."""

    inputs: Sequence[float]  # what the stage before sends; the gradient sent back has the same size
    activations: Sequence[float]  # everything that backward needs
    weights: Sequence[float]
    for_weights: Sequence[float] | None = None  # what W still needs once I is done; None: all the activations


def in_flight(lists: Iterable[Iterable[Op]]) -> list[int]:
    """Return the largest number of micro-batches in flight at a time, by rank: F adds one, B or I removes it."""
    return [_peak((op.kind == "F") - (op.kind in "BI") for op in ops) for ops in lists]


def in_flight_until_weights(lists: Iterable[Iterable[Op]]) -> list[int]:
    """Return the largest number of micro-batches in flight at a time, by rank, counting each until both its gradients
    are computed: F adds one, B or W removes it.
    """
    return [_peak((op.kind == "F") - (op.kind in "BW") for op in ops) for ops in lists]


def peak_bytes(lists: Sequence[Sequence[Op]], sizes: Sizes) -> list[float]:
    """Return each rank's peak memory for activations, in bytes, not counting the weights and their versions."""
    late = sizes.activations if sizes.for_weights is None else sizes.for_weights
    peaks = []
    for ops in lists:
        recomputed = {(stage, chunk) for kind, stage, chunk in ops if kind == "R"}

        def change(op: Op, recomputed=recomputed) -> float:
            inputs, everything = sizes.inputs[op.stage], sizes.activations[op.stage]
            if op.kind == "F":
                return inputs if (op.stage, op.chunk) in recomputed else everything
            if op.kind == "R":
                return everything
            freed = everything + inputs * ((op.stage, op.chunk) in recomputed)
            return {"B": -freed, "I": late[op.stage] - freed, "W": -late[op.stage]}.get(op.kind, 0)

        peaks.append(_peak(map(change, ops)))
    return peaks


def traffic(lists: Sequence[Sequence[Op]], sizes: Sizes) -> Counter[tuple[int, int]]:
    """Return the number of bytes sent over each link (from, to). They are activations, their gradients, and weight
    gradients, which ranks that share a stage sum.
    """
    graph = Graph(lists)
    bytes_over: Any = Counter()  # of floats, which its type does not foresee
    for rank, ops in enumerate(lists):
        for op in ops:
            for need in graph.needs(op) if op.kind in "FBI" else ():
                if (source := graph.place[need][0]) != rank:
                    bytes_over[source, rank] += sizes.inputs[op.stage if op.kind == "F" else op.stage + 1]
    for update, gradients in graph.gradients.items():
        ring = [graph.place[op][0] for op in gradients]
        for source, target in zip(ring, ring[1:] + ring[:1], strict=True):
            bytes_over[source, target] += 2 * (len(ring) - 1) / len(ring) * sizes.weights[update.stage]
    return bytes_over


def _peak(changes: Iterable[Number]) -> Number:
    return max(accumulate(changes), default=0)
