"""Recomputing activations: what a chain of layers holds at its peak, and the cheapest plan under a memory limit.

A plan cuts the layers into segments, in order, each `(how, layers)` with the number of its layers:

    keep     holds everything that its backward pass needs, from its forward pass on
    again    holds its input only; its forward pass is repeated just before its backward pass

The peak of a segment `again` is in its backward pass: what earlier segments hold, its input, and what its layers keep.
For L equal layers with inputs of a bytes that keep c bytes each, k such segments hold

    k a + (L / k) c,    at least 2 sqrt(L a c), with k = sqrt(L c / a) segments    (sqrt(L) if c = a)

and repeat one forward pass. The last segment is kept, since repeating it would free nothing.
Source: Chen et al., arXiv:1604.06174, 2016, sections 3 and 4; the exact search is our own.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

KEEP, AGAIN = "keep", "again"
Plan = list[tuple[str, int]]


class ChainLayer(NamedTuple):
    """One layer of a chain."""

    input: int  # bytes
    kept: int  # bytes that its backward pass needs, all of them computed in its forward pass
    forward: float  # s


def peak_bytes(layers: Sequence[ChainLayer], plan: Plan) -> int:
    """Return the peak memory for activations, in bytes. Temporaries within a layer do not count."""
    held = peak = at = 0
    for how, count in plan:
        whole = sum(layer.kept for layer in layers[at : at + count])
        before = 0 if how == KEEP else layers[at].input
        peak = max(peak, held + before + whole)
        held += before or whole
        at += count
    return peak


def repeated_seconds(layers: Sequence[ChainLayer], plan: Plan) -> float:
    """Return the time of the forward passes that a step repeats, in s."""
    ends = [*accumulate(count for _, count in plan)]
    return sum(
        layer.forward
        for (how, count), end in zip(plan, ends, strict=True)
        for layer in layers[end - count : end]
        if how == AGAIN
    )


def even_plan(layers: int, segments: int) -> Plan:
    """Return a plan of segments of equal size, as far as possible, of which only the last is kept."""
    sizes = [layers * (n + 1) // segments - layers * n // segments for n in range(segments)]
    return [*((AGAIN, size) for size in sizes[:-1]), (KEEP, sizes[-1])]


def best_plan(layers: Sequence[ChainLayer], limit: int) -> Plan | None:
    """Return the plan with the shortest repeated time whose peak is at most `limit` bytes, or None if no plan fits.

    It takes time and memory in proportion to `limit`, so give sizes in large units, such as MB.
    """
    ends = [0, *accumulate(layer.kept for layer in layers)]
    times = [0.0, *accumulate(layer.forward for layer in layers)]
    least = np.full((len(layers) + 1, limit + 1), np.inf)  # [l, b]: repeated before layer l, whose segments hold b
    least[0, 0] = 0
    came: dict[tuple[int, int], tuple[str, int, int]] = {}  # (l, b) -> the segment that ends there, and b before it
    for start, layer in enumerate(layers):
        for stop in range(start + 1, len(layers) + 1):
            whole = ends[stop] - ends[start]
            if whole > limit:
                break
            ways = [(AGAIN, layer.input, whole + layer.input, times[stop] - times[start])]
            ways += [(KEEP, whole, whole, 0.0)] * (stop == start + 1)
            for how, held, most, again in ways:
                if (room := limit - most) < 0:  # for earlier segments
                    continue
                reached = least[start, : room + 1] + again
                better = np.flatnonzero(reached < least[stop, held : held + room + 1])
                least[stop, held + better] = reached[better]
                came |= {(stop, int(b) + held): (how, stop - start, int(b)) for b in better}
    if not np.isfinite(least[-1]).any():
        return None
    at, held, plan = len(layers), int(least[-1].argmin()), []
    while at:
        how, count, held_before = came[at, held]
        plan.append((how, count))
        at, held = at - count, held_before
    return plan[::-1]
