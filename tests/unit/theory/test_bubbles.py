"""Idle time has a reason, and the reasons lead back along the critical path."""

import random
from itertools import pairwise

import pytest

from algorithms.parts.pipeline.ops import Op, parse, spell
from theory import bubbles, schedules
from theory.schedule_timing import simulate

UNIT = {"F": 1, "B": 2, "R": 1, "I": 1, "W": 1}


def costs(lists, seed):
    draw = random.Random(seed)
    return dict.fromkeys("FRBIWU", 0) | {op: draw.choice([0.5, 1, 3.25]) for ops in lists for op in ops}


def test_every_idle_slot_says_what_it_waits_for():
    lists = [parse("0F0 0F1 0B0 0B1"), parse("1F0 1B0 1F1 1B1")]
    times = simulate(lists, UNIT, latency=0.5)
    assert [(slot.start, slot.end, str(slot)) for slot in bubbles.idle(times)] == [
        (2, 4.5, "0B0 waits for 1B0 of rank 1"),
        (4.5, 5, "0B0 waits for 1B0 to come over the link from rank 1"),
        (7, 7.5, "0B1 waits for 1B1 of rank 1"),
        (7.5, 8, "0B1 waits for 1B1 to come over the link from rank 1"),
        (0, 1, "1F0 waits for 0F0 of rank 0"),
        (1, 1.5, "1F0 waits for 0F0 to come over the link from rank 0"),
        (7.5, 10, "rank 1 has nothing left to do"),
    ]


@pytest.mark.parametrize("latency", [0, 0.75])
@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_the_reasons_add_up_to_the_idle_time(name, latency):
    lists = schedules.lists(name, 4, 8)
    times = simulate(lists, costs(lists, 3), latency)
    slots = list(bubbles.idle(times))
    for rank, idle in enumerate(times.idle):
        assert sum(slot.end - slot.start for slot in slots if slot.rank == rank) == pytest.approx(idle)
    assert all(slot.end > slot.start and slot.on != slot.rank for slot in slots)
    assert latency or all(slot.reason != "link" for slot in slots)


@pytest.mark.parametrize("latency", [0, 0.75])
@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_the_critical_path_is_as_long_as_the_step(name, latency):
    lists = schedules.lists(name, 4, 8)
    prices = costs(lists, 4)
    times = simulate(lists, prices, latency)
    path = bubbles.critical_path(times)
    work = sum(times.end[rank][n] - times.start[rank][n] for rank, n in path)
    links = sum(before != after for (before, _), (after, _) in pairwise(path))
    assert work + latency * links == pytest.approx(times.makespan)


def test_a_longer_op_on_the_critical_path_makes_the_step_longer():
    lists = schedules.lists("1f1b", 4, 8)
    prices = costs(lists, 5)
    times = simulate(lists, prices)
    for rank, n in bubbles.critical_path(times):
        op = lists[rank][n]
        assert simulate(lists, prices | {op: prices[op] + 1}).makespan >= times.makespan + 1


def test_the_critical_path_of_a_naive_pipeline_is_all_of_it():
    times = simulate(schedules.lists("naive", 3, 1), UNIT)
    path = [times.lists[rank][n] for rank, n in bubbles.critical_path(times)]
    assert spell(op for op in path if op.kind != "U") == "0F0 1F0 2F0 2B0 1B0 0B0"


def test_1f1b_waits_for_links_in_its_steady_state_and_gpipe_does_not():
    def waits(name):
        times = simulate(schedules.lists(name, 4, 16), {"F": 1, "B": 1}, 1)
        return {slot.op.chunk for slot in bubbles.idle(times) if slot.reason == "link" and slot.rank == 1}

    assert waits("gpipe") == {0, 15}  # the first forward and the first backward
    assert len(waits("1f1b")) > 8


def test_an_update_may_wait_for_the_gradient_of_another_rank():
    lists = [parse("0F0 0B0 0U0"), parse("0F1 0B1 0U0")]
    times = simulate(lists, {"F": 1, "B": 2, Op("B", 0, 1): 5})
    (slot,) = bubbles.idle(times)
    assert str(slot) == "0U0 waits for 0B1 of rank 1" and (slot.start, slot.end) == (3, 6)
