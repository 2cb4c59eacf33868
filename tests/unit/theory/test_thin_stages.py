"""Schedules of several stages per rank: their closed forms, over all small numbers of ranks, micro-batches, stages."""

from itertools import product

import pytest

from algorithms.parts.pipeline.ops import check
from theory import schedules
from theory.pipeline_memory import in_flight, in_flight_until_weights
from theory.schedule_timing import simulate

COSTS = [(1, 1, 1), (2, 2, 1), (10, 11, 6), (3, 5, 0), (4, 3, 2)]  # of F, I and W; W is the shortest


def every(name, ranks=range(1, 7), chunks=range(1, 17), pieces=range(1, 5)):
    """Ranks, micro-batches, stages per rank and lists, for all numbers for which there is a schedule."""
    for s, m, v in product(ranks, chunks, pieces):
        if name == "looped_bfs" or m % max(1, m // s) == 0:
            lists = schedules.lists(name, s, m, pieces=v)
            check(lists)
            yield s, m, v, lists


@pytest.mark.parametrize("name", ["interleaved", "looped_bfs"])
def test_thin_stages_divide_the_bubble_and_wait_in_each_round_for_micro_batches_that_are_missing(name):
    for s, m, v, lists in every(name):
        for f, b in ((1, 1), (1, 2), (3, 2)):
            idle = (s - 1) * (f + b) + (v - 1) * max(0, s - m) * (f + b)
            assert simulate(lists, {"F": f, "B": b}).idle == [idle] * s, (s, m, v)


def test_interleaved_zero_bubble_divides_the_bubble_of_h1_if_micro_batches_are_as_many_as_ranks():
    for s, m, v, lists in every("zb_interleaved"):
        for f, i, w in COSTS if m >= s else ():
            assert simulate(lists, {"F": f, "I": i, "W": w}).idle == [(s - 1) * (f + i - w)] * s, (s, m, v)


def test_where_the_gradient_of_the_weights_takes_longest_interleaved_zero_bubble_idles_more_than_that():
    for s, m, v, lists in every("zb_interleaved", ranks=range(2, 7)):
        if m >= s:
            assert max(simulate(lists, {"F": 1, "I": 1, "W": 2}).idle) > 0, (s, m, v)


def test_interleaving_holds_a_group_of_each_stage_but_the_last_and_two_forwards_for_each_rank_to_come():
    for s, m, v, lists in every("interleaved"):
        group = m // max(1, m // s)
        assert in_flight(lists) == [min(m * v, 2 * (s - 1 - r) + (v - 1) * group + 1) for r in range(s)]


def test_interleaved_zero_bubble_holds_as_much_on_every_rank_until_w():
    for s, m, v, lists in every("zb_interleaved"):
        group = m // max(1, m // s)
        assert in_flight(lists) == [min(m * v, s - r + (v - 1) * group) for r in range(s)]
        assert in_flight_until_weights(lists) == [min(m * v, s + (v - 1) * group)] * s


def test_breadth_first_holds_all_micro_batches():
    for s, m, v, lists in every("looped_bfs"):
        assert in_flight(lists) == [m * v] * s


def test_breadth_first_is_done_with_a_stage_before_the_next_one_begins():
    for s, m, v, lists in every("looped_bfs"):
        for rank, ops in enumerate(lists):
            stages = [stage for stage in range(rank, v * s, s) for _ in range(m)]
            assert [op.stage for op in ops if op.kind == "F"] == stages
            assert [op.stage for op in ops if op.kind == "B"] == stages[::-1]


def test_with_one_stage_per_rank_they_are_zb_h1_and_gpipe():
    for s, m in product((1, 2, 4), (1, 4, 8)):
        assert schedules.lists("zb_interleaved", s, m, pieces=1) == schedules.lists("zb_h1", s, m)
        assert schedules.lists("looped_bfs", s, m, pieces=1) == schedules.lists("gpipe", s, m)
