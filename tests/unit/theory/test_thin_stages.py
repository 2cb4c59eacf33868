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


def span_idle(name, ranks, chunks, f=1, i=1, w=1):
    """The longest span of a rank less its work, where f, i and w are the times of a pass of one of its two stages."""
    times = simulate(schedules.lists(name, ranks, chunks), {"F": f, "I": i, "W": w})
    return max(times.span) - 2 * chunks * (f + i + w)


def test_v_half_idles_half_as_long_as_1f1b_and_v_min_two_thirds():
    for s in range(3, 13):
        for m in (s, s + 1, 2 * s, 3 * s + 1):
            assert span_idle("v_half", s, m) == (3 * s - 4 if s % 2 else 3 * s - 7), (s, m)
            assert span_idle("v_min", s, m) == (4 * s - 5 if s % 3 else 4 * s - 7), (s, m)


def test_v_half_holds_half_the_micro_batches_of_1f1b_and_v_min_a_third():
    for s in range(2, 13):
        for m in (s, 2 * s, 3 * s + 1):
            assert max(in_flight_until_weights(schedules.lists("v_half", s, m))) == 2 * ((s + 2) // 2)
            assert max(in_flight_until_weights(schedules.lists("v_min", s, m))) == 2 * ((s + 4) // 3)


def test_a_v_is_a_schedule_for_any_numbers():
    for name, s, m in product(("v_half", "v_min"), range(1, 9), range(1, 13)):
        lists = schedules.lists(name, s, m)
        check(lists)
        assert simulate(lists, {"F": 2, "I": 3, "W": 1}, 0.5).makespan > 0


AUTHORS = [  # S, M, times of F, I and W; idle time within the longest span by the authors' code: V-Half, V-Min
    (4, 8, (1, 1, 1), 5, 11),
    (8, 16, (1, 1, 1), 17, 27),
    (10, 30, (1, 1, 1), 23, 35),
    (4, 8, (10, 11, 6), 79, 204),
    (4, 16, (10, 11, 6), 79, 300),
    (5, 10, (4, 5, 4), 56, 102),
    (6, 12, (3, 4, 2), 55, 126),
    (6, 24, (3, 4, 2), 55, 198),
    (8, 32, (10, 11, 6), 227, 657),
]


@pytest.mark.parametrize(("s", "m", "times", "half", "least"), AUTHORS)
def test_v_half_and_v_min_idle_as_long_as_by_the_authors_code(s, m, times, half, least):
    assert (span_idle("v_half", s, m, *times), span_idle("v_min", s, m, *times)) == (half, least)


def test_where_passes_differ_v_min_idles_for_each_micro_batch_and_v_half_does_not():
    for f, i, w in ((4, 4, 3), (3, 4, 2), (5, 4, 3), (10, 11, 6)):
        assert w + 2 * i >= 2 * f and w + 2 * f >= 2 * i
        for s in (4, 6, 8):
            assert span_idle("v_half", s, 4 * s, f, i, w) == span_idle("v_half", s, 2 * s, f, i, w)
            assert span_idle("v_min", s, 4 * s, f, i, w) > span_idle("v_min", s, 2 * s, f, i, w)
