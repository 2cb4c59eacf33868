"""The list simulator against itself written another way, against laws, and its refusals."""

import random

import pytest

from algorithms.parts.pipeline.ops import Op, parse, rematerialise
from theory import op_graph, schedules
from theory.schedule_timing import bubble_of_ideal, bubble_of_span, bubble_of_total, simulate

UNIT = {"F": 1, "B": 2, "R": 1, "I": 1, "W": 1}


def relaxed(lists, costs, latency):
    """The same times found by asking again and again who starts too early: no queue, no order, no waiting."""
    net = op_graph.Graph(lists)
    start = {(rank, n): 0.0 for rank, ops in enumerate(lists) for n in range(len(ops))}
    length = {}
    for rank, n in start:
        group = [lists[rank][i] for i in net.together(rank, n)]
        length[rank, n] = costs["F+B"] if len(group) > 1 and "F+B" in costs else sum(costs[op] for op in group)
    moved = True
    while moved:
        moved = False
        for rank, n in start:
            group = net.together(rank, n)
            bounds = [0.0]
            if group[0]:
                bounds.append(start[rank, group[0] - 1] + length[rank, group[0] - 1])
            for need in (need for i in group for need in net.needs(lists[rank][i])):
                where = net.place[need]
                bounds.append(start[where] + length[where] + latency * (where[0] != rank))
            if max(bounds) > start[rank, n]:
                start[rank, n], moved = max(bounds), True
    return [[start[rank, n] for n in range(len(ops))] for rank, ops in enumerate(lists)]


def random_costs(lists, seed):
    draw = random.Random(seed)
    return dict.fromkeys("FRBIWU", 0) | {op: draw.choice([0, 0.5, 1, 3.25]) for ops in lists for op in ops}


@pytest.mark.parametrize("latency", [0, 0.75])
@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_the_times_are_the_earliest_that_costs_needs_and_links_allow(name, latency):
    lists = schedules.lists(name, 4, 8)
    costs = random_costs(lists, name)
    assert simulate(lists, costs, latency).start == relaxed(lists, costs, latency)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_work_is_conserved_and_no_step_is_shorter_than_its_longest_chain_or_its_busiest_rank(name, seed):
    lists = schedules.lists(name, 2, 12)
    costs = random_costs(lists, seed)
    times = simulate(lists, costs)
    assert times.busy == pytest.approx([sum(costs[op] for op in ops) for ops in lists])
    assert times.makespan >= max(times.busy) - 1e-9
    alone = simulate([[Op(*op)] for ops in lists for op in ops if op.kind != "U"], costs)  # a rank each: needs only
    assert times.makespan >= alone.makespan - 1e-9


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_more_work_or_a_slower_link_makes_nothing_earlier(name):
    lists = schedules.lists(name, 4, 8)
    costs = random_costs(lists, 1)
    before = simulate(lists, costs, 0.5)
    later = random.Random(2).choice([op for ops in lists for op in ops])
    for times in (simulate(lists, costs | {later: costs[later] + 5}, 0.5), simulate(lists, costs, 0.75)):
        assert all(
            b >= a for row, now in zip(before.start, times.start, strict=True) for a, b in zip(row, now, strict=True)
        )


def test_a_cost_may_be_of_a_kind_of_a_stage_or_of_one_op():
    lists = [parse("0F0 0F1 0B0 0B1"), parse("1F0 1F1 1B0 1B1")]
    times = simulate(lists, {"F": 1, "B": 2, ("F", 1): 10, Op("F", 1, 1): 100})
    assert times.end[1] == [11, 111, 113, 115]


def test_joined_ops_wait_for_each_other_and_end_together():
    lists = [parse("0F0 0F1+0B0 0B1"), parse("1F0 1B0 1F1 1B1")]
    times = simulate(lists, {"F": 1, "B": 2, "F+B": 2.5})
    assert (times.start[0], times.end[0]) == ([0, 4, 4, 8 + 1.5], [1, 6.5, 6.5, 11.5])
    assert simulate(lists, {"F": 1, "B": 2}).end[0][1:3] == [7, 7]  # without a price of their own, the sum
    assert times.busy == [1 + 2.5 + 2, 6]


def test_an_update_on_two_ranks_needs_the_gradients_of_both():
    lists = [parse("0F0 1F0 1B0 0B0 0U0"), parse("0F1 1F1 1B1 0B1 0U0")]
    times = simulate(lists, {"F": 1, "B": 2, "U": 0.5, Op("B", 0, 1): 10}, 0.25)
    assert times.start[0][-1] == 14.25  # rank 0 was done at 6; rank 1 at 14, and its gradient travels
    assert times.start[1][-1] == 14


def test_late_rematerialisation_is_a_forward_joined_to_its_backward():
    lists = schedules.lists("gpipe_late", 4, 8)
    fused = simulate(schedules.lists("gpipe", 4, 8), {"F": 1, "B": 3})
    assert simulate(lists, UNIT).makespan == fused.makespan == 44
    assert simulate([list(rematerialise(ops)) for ops in schedules.lists("1f1b", 4, 8)], UNIT).makespan == 41


def test_the_three_conventions_of_the_bubble_differ_and_are_named():
    times = simulate(schedules.lists("gpipe", 4, 8), UNIT)
    assert bubble_of_total(times) == pytest.approx(3 / 11)
    assert bubble_of_ideal(times) == pytest.approx(3 / 8)
    assert bubble_of_span(times) == pytest.approx(3 / 11)  # stage 0 starts first and ends last
    assert bubble_of_span(simulate(schedules.lists("zb_h2", 4, 8), UNIT)) == 0
    assert bubble_of_total(simulate(schedules.lists("1f1b", 8, 32), UNIT)) == pytest.approx(7 / 39)
    assert bubble_of_total(simulate(schedules.lists("gpipe", 4, 1), UNIT)) == pytest.approx(0.75)


def test_throughput_is_micro_batches_per_time():
    assert simulate(schedules.lists("1f1b", 4, 8), UNIT).throughput == 8 / 33
    assert simulate(schedules.lists("chimera", 4, 4), UNIT).throughput == 4 / 16


@pytest.mark.parametrize(
    ("lists", "circle"),
    [
        (
            ["0F0 0B0 0F1 0B1", "1F1 1F0 1B1 1B0"],
            "stuck: rank 0 at 0B0 waits for 1B0 of rank 1, rank 1 at 1F1 waits for 0F1 of rank 0.",
        ),
        (["0F0 0B0", "1F0 1I0 1W0", "2F0 2W0 2I0"], "stuck: rank 2 at 2W0 waits for 2I0 of rank 2."),
        (
            ["0F0 0F1+0B0 0B1", "1F0 1F1 1B0 1B1"],
            "rank 0 at 0B0 waits for 1B0 of rank 1, rank 1 at 1F1 waits for 0F1 of rank 0",
        ),
        (["0F0 0B0", "1F0"], "stuck: rank 0 at 0B0 waits for 1B0 that nobody does"),
    ],
)
def test_a_schedule_that_waits_in_a_circle_names_the_circle(lists, circle):
    with pytest.raises(ValueError, match=circle):
        simulate([parse(ops) for ops in lists], UNIT)


def test_an_update_of_two_ranks_before_any_gradient_is_refused():
    with pytest.raises(ValueError, match=r"0U0 .*before .*stage 0"):
        simulate([parse("0F0 0B0 0U0"), parse("0F1 0U0 0B1")], UNIT)


def test_a_cost_that_is_missing_is_asked_for_by_name():
    with pytest.raises(ValueError, match=r"B .*cost.*costs\['B'\]"):
        simulate([parse("0F0 0B0")], {"F": 1})


def test_numbers_that_leave_gaps_as_wide_as_the_schedule_are_refused():
    with pytest.raises(ValueError, match=r"2 ops .*1000000000000.* from 0"):
        simulate([parse("0F1000000000000 0B1000000000000")], UNIT)
