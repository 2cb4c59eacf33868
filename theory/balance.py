"""Cut a chain of layers into a given number of parts of about equal cost, by time or by size.

    by_variance   smallest sum of squares of the parts' costs: V(j, k) = min_i V(i, k-1) + (c_i + ... + c_{j-1})^2
    by_slowest    smallest maximum, which is what throughput needs:      V(j, k) = min_i max(V(i, k-1), c_i + ...)
    by_blocks     a heuristic: scale costs to 0..1, then move layers towards the cheapest part until no two parts
                  differ by more than 1

by_blocks has two weaknesses. torchgpipe scales x -> (x - min) / (max - min), which makes the cheapest layers free:
nine layers of 5 and one of 6, cut into four parts, become 10 | 10 | 10 | 21. Scaled by the maximum alone (`offset`
off), they become 10 | 10 | 15 | 16. And in either case parts may differ by the cost of the most expensive layer:
5 5 5 5 20 in two parts stays at 10 | 30, although 20 | 20 is possible. The other two functions find it.

Costs are `profile.times` or `profile.sizes(chunks, copies)`. The result is the number of layers in each part.
Source: variance in Huang et al., NeurIPS 2019; blocks in torchgpipe after Bárány & Grinberg, arXiv:1308.2452.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from math import inf

from theory.profile import ranges


def by_variance(costs: Sequence[float], parts: int) -> list[int]:
    """Return the cut whose parts have the smallest sum of squared costs."""
    return _best(costs, parts, lambda before, cost: before + cost * cost)


def by_slowest(costs: Sequence[float], parts: int) -> list[int]:
    """Return the cut whose slowest part is fastest. Ties go to earlier cuts."""
    return _best(costs, parts, max)


def by_blocks(costs: Sequence[float], parts: int, offset: bool = True) -> list[int]:
    """Return torchgpipe's cut. With `offset`, the cheapest layers are treated as free, as torchgpipe does.

    Among equally cheap parts it chooses the one closest to the most expensive part; any other may make it loop forever.
    """
    _check(costs, parts)
    low, high = min(costs) if offset else 0, max(costs)
    scaled = [(cost - low) / (high - low) if high > low else 0.0 for cost in costs]
    cuts = [len(costs) // parts * part for part in range(parts)] + [len(costs)]

    def cost(part: int) -> float:
        return sum(scaled[cuts[part] : cuts[part + 1]])

    while True:
        largest = max(range(parts), key=cost)
        giver = None
        while giver != largest:
            smallest = min(range(parts), key=lambda part: (cost(part), abs(part - largest)))
            if cost(largest) <= cost(smallest) + 1:
                return [j - i for i, j in pairwise(cuts)]
            if largest < smallest:
                giver = smallest - 1
                cuts[smallest] -= 1
            else:
                giver = smallest + 1
                cuts[giver] += 1


def striped_speed_up(work, stages, stripes=1):
    """Return the speed-up of a full pipeline over one GPU.

    `work` lists the cost of each layer. The last layer is first split into `stripes` pieces; then the layers are
    divided among `stages` stages.
    """
    *layers, top = work
    pieces = [*layers, *[top / stripes] * stripes]
    counts = by_slowest(pieces, stages)
    ends = list(accumulate(counts))
    return sum(work) / max(sum(pieces[end - count : end]) for end, count in zip(ends, counts, strict=True))


def _best(costs: Sequence[float], parts: int, join: Callable[[float, float], float]) -> list[int]:
    """Return the cut that minimises join(... join(join(0, c_0), c_1) ..., c_n), where c_i is the cost of its part i."""
    _check(costs, parts)
    cost, layers = ranges(costs), len(costs)
    best: dict[tuple[int, int], tuple[float, tuple]] = {(0, 0): (0.0, ())}  # (layers, parts) -> (value, their sizes)
    for part in range(1, parts + 1):
        for j in range(part, layers + 1):
            found = inf, ()
            for i in range(part - 1, j):
                if (i, part - 1) in best:
                    value, sizes = best[i, part - 1]
                    if (value := join(value, cost[i, j - 1])) < found[0]:
                        found = value, (*sizes, j - i)
            best[j, part] = found
    return list(best[layers, parts][1])


def _check(costs: Sequence[float], parts: int) -> None:
    if not 1 <= parts <= len(costs):
        raise ValueError(f"{len(costs)} layers cannot be cut into {parts} parts; use 1 to {len(costs)}.")
