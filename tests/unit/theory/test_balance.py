"""Balanced cuts against brute force, the examples of the book, and torchgpipe's trap."""

import random
from itertools import combinations, pairwise

import pytest

from theory.balance import by_blocks, by_slowest, by_variance

WAYS = by_variance, by_slowest, by_blocks


def sums(costs, sizes):
    cuts = [0]
    for size in sizes:
        cuts.append(cuts[-1] + size)
    assert cuts[-1] == len(costs)
    return [sum(costs[i:j]) for i, j in pairwise(cuts)]


def every_cut(costs, parts):
    for inner in combinations(range(1, len(costs)), parts - 1):
        yield sums(costs, [j - i for i, j in pairwise((0, *inner, len(costs)))])


CASES = [([random.Random(seed).randint(0, 20) for _ in range(3 + seed % 6)], 1 + seed % 4) for seed in range(40)]


@pytest.mark.parametrize(("costs", "parts"), CASES)
def test_no_cut_is_better(costs, parts):
    parts = min(parts, len(costs))
    possible = list(every_cut(costs, parts))
    assert sum(c * c for c in sums(costs, by_variance(costs, parts))) == min(
        sum(c * c for c in cut) for cut in possible
    )
    assert max(sums(costs, by_slowest(costs, parts))) == min(max(cut) for cut in possible)


@pytest.mark.parametrize(("costs", "parts"), CASES)
def test_blocks_differ_by_no_more_than_the_dearest_layer_once_they_are_scaled(costs, parts):
    parts = min(parts, len(costs))
    sizes = by_blocks(costs, parts)
    low, high = min(costs), max(costs)
    scaled = sums([(c - low) / (high - low) if high > low else 0 for c in costs], sizes)
    assert max(scaled) - min(scaled) <= 1 + 1e-12
    assert all(sizes)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("costs", "parts", "expected"),
    [
        ([1, 2, 3, 4, 5, 6], 2, [10, 11]),
        ([1, 2, 3, 4, 5, 6], 3, [6, 9, 6]),
        ([9, 8, 7, 6, 5, 4, 3, 2, 1], 3, [17, 13, 15]),
    ],
)
def test_all_ways_agree_where_costs_are_smooth(way, costs, parts, expected):
    assert sums(costs, way(costs, parts)) == expected


@pytest.mark.parametrize(
    ("costs", "parts", "trap", "best"),
    [
        ([5, 5, 5, 5, 20], 2, [10, 30], [20, 20]),
        ([10, 1, 1, 1, 1, 1, 1], 2, [12, 4], [10, 6]),
        ([3, 1, 1, 1, 1, 5], 3, [4, 2, 6], [3, 4, 5]),
        ([5, 5, 5, 5, 20, 5, 5, 5, 5], 3, [15, 30, 15], [20, 20, 20]),
    ],
)
def test_blocks_may_differ_by_a_whole_layer_where_an_even_cut_exists(costs, parts, trap, best):
    assert sums(costs, by_blocks(costs, parts)) == trap
    assert sums(costs, by_blocks(costs, parts, offset=False)) == trap  # which is not the offset's fault alone
    assert sums(costs, by_slowest(costs, parts)) == best


@pytest.mark.parametrize(
    ("costs", "parts"),
    [
        ([4, 0, 0, 0, 1, 0, 4, 0, 5, 17], 8),
        ([17, 5, 0, 2, 12, 1, 5, 5, 20, 2, 2, 2, 1, 0, 5, 0, 2, 2, 0], 3),
    ],
)
def test_moving_boundaries_comes_to_an_end(costs, parts):
    assert sum(by_blocks(costs, parts)) == len(costs)


def test_torchgpipe_thinks_the_cheapest_layers_are_free():
    costs = [5] * 9 + [6]
    assert sums(costs, by_blocks(costs, 4)) == [10, 10, 10, 21]
    assert sums(costs, by_blocks(costs, 4, offset=False)) == [10, 10, 15, 16]
    assert max(sums(costs, by_slowest(costs, 4))) == 15


@pytest.mark.parametrize("way", WAYS)
def test_as_many_parts_as_layers_are_one_each_and_more_are_refused(way):
    assert way([3, 1, 2], 3) == [1, 1, 1]
    assert way([3, 1, 2], 1) == [3]
    assert way([4, 4, 4, 4], 2) == [2, 2]
    for parts in (0, 4):
        with pytest.raises(ValueError, match=f"3 layers .* {parts} parts; use 1 to 3"):
            way([3, 1, 2], parts)
