"""The list simulator against the closed forms of the literature."""

import re

import pytest

from algorithms.pipelined import gpipe, pipedream
from algorithms.pipelined.schedule import Op, parse
from algorithms.pipelined.timing import bubble_of_ideal, bubble_of_span, bubble_of_total, simulate

BOTH = pytest.mark.parametrize("schedule", [gpipe.schedule, pipedream.schedule], ids=["gpipe", "1F1B"])


def lists(schedule, stages, chunks, **options):
    return [list(schedule(stage, stages, chunks, **options)) for stage in range(stages)]


@BOTH
@pytest.mark.parametrize(
    ("stages", "chunks", "f", "g", "makespan", "idle"),
    [(4, 8, 1, 2, 33, 9), (4, 8, 1, 1, 22, 6), (8, 32, 1, 2, 117, 21)],
)
def test_the_worked_values_of_the_book(schedule, stages, chunks, f, g, makespan, idle):
    times = simulate(lists(schedule, stages, chunks), {"F": f, "B": g})
    assert times.makespan == makespan
    assert times.idle == [idle] * stages


def test_the_three_conventions_of_the_bubble_differ_and_are_named():
    times = simulate(lists(gpipe.schedule, 4, 8), {"F": 1, "B": 2})
    assert bubble_of_total(times) == pytest.approx(3 / 11)
    assert bubble_of_ideal(times) == pytest.approx(3 / 8)
    assert bubble_of_span(times) == pytest.approx(3 / 11)  # stage 0 starts first and ends last
    assert bubble_of_total(simulate(lists(pipedream.schedule, 8, 32), {"F": 1, "B": 2})) == pytest.approx(7 / 39)
    assert bubble_of_total(simulate(lists(gpipe.schedule, 4, 1), {"F": 1, "B": 2})) == pytest.approx(0.75)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("chunks", [1, 3, 8, 24])
@pytest.mark.parametrize(("f", "g"), [(1, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("latency", [0, 0.25, 1])
def test_gpipe_idles_twice_through_the_pipeline_and_its_latency(stages, chunks, f, g, latency):
    times = simulate(lists(gpipe.schedule, stages, chunks), {"F": f, "B": g}, latency)
    assert times.idle == pytest.approx([(stages - 1) * (f + g + 2 * latency)] * stages)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize(("f", "g"), [(1, 1), (1, 2), (3, 2)])
@pytest.mark.parametrize("latency", [0, 0.1, 0.5, 1])
def test_1f1b_pays_latency_in_every_round_of_the_steady_state(stages, rounds, f, g, latency):
    chunks = rounds * stages
    times = simulate(lists(pipedream.schedule, stages, chunks), {"F": f, "B": g}, latency)
    idle = (stages - 1) * (f + g) + 2 * latency * ((stages - 1) * rounds + stages - 2)
    assert times.idle == pytest.approx([idle] * stages)


def test_a_little_latency_costs_1f1b_more_than_gpipe():
    costs = {"F": 1, "B": 1}
    assert simulate(lists(gpipe.schedule, 4, 16), costs, 1).idle[0] == 12
    assert simulate(lists(pipedream.schedule, 4, 16), costs, 1).idle[0] == 34


def test_rematerialisation_costs_less_when_it_need_not_wait_for_the_gradient():
    early = simulate(lists(gpipe.schedule, 4, 8, recompute=True), {"F": 1, "B": 2, "R": 1})
    late = simulate(lists(gpipe.schedule, 4, 8), {"F": 1, "B": 3})
    assert (early.makespan, late.makespan) == (41, 44)
    assert early.idle == [9] * 4 and late.idle == [12] * 4


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("chunks", [1, 3, 12])
def test_1f1b_holds_few_micro_batches_where_gpipe_holds_all(stages, chunks):
    costs = {"F": 1, "B": 2}
    assert simulate(lists(gpipe.schedule, stages, chunks), costs).in_flight == [chunks] * stages
    few = simulate(lists(pipedream.schedule, stages, chunks), costs).in_flight
    assert few == [min(chunks, stages - stage) for stage in range(stages)]


def test_the_slowest_stage_sets_the_period_of_an_endless_pipeline():
    costs = {("F", 0): 1, ("B", 0): 2, ("F", 1): 2, ("B", 1): 3, ("F", 2): 1, ("B", 2): 2, ("F", 3): 0.5, ("B", 3): 1}
    times = simulate(lists(pipedream.schedule, 4, 60), costs)
    end = dict(zip(times.lists[0], times.end[0], strict=True))
    assert end[Op("B", 0, 40)] - end[Op("B", 0, 30)] == pytest.approx(10 * 5)


def test_the_zero_bubble_papers_1f1b_comes_out_to_four_digits():
    profiled = [  # S, M, forward, backward of inputs, of weights, transfer (ms) and the printed bubble rate of 1F1B
        (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431),
        (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240),
        (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552),
        (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168),
    ]
    for stages, chunks, f, i, w, latency, printed in profiled:
        times = simulate(lists(pipedream.schedule, stages, chunks), {"F": f, "B": i + w}, latency)
        assert round(bubble_of_span(times), 4) == printed


def test_split_backward_and_virtual_stages_need_no_other_simulator():
    h1 = """
    0F0 0F1 0F2 0F3 0I0 0W0 0F4 0I1 0W1 0F5 0I2 0W2 0I3 0W3 0I4 0W4 0I5 0W5
    1F0 1F1 1F2 1I0 1F3 1I1 1W0 1F4 1I2 1W1 1F5 1I3 1W2 1I4 1W3 1I5 1W4 1W5
    2F0 2F1 2I0 2F2 2I1 2F3 2I2 2W0 2F4 2I3 2W1 2F5 2I4 2W2 2I5 2W3 2W4 2W5
    3F0 3I0 3F1 3I1 3F2 3I2 3F3 3I3 3W0 3F4 3I4 3W1 3F5 3I5 3W2 3W3 3W4 3W5
    """
    times = simulate([parse(line) for line in h1.strip().splitlines()], {"F": 1, "I": 1, "W": 1})
    assert times.idle == [3] * 4  # (S-1)(f+i-w)
    interleaved = """
    0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3
    1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3
    """
    times = simulate([parse(line) for line in interleaved.strip().splitlines()], {"F": 0.5, "B": 1})
    assert times.idle == [1.5] * 2  # (S-1)(f+g)/v


@pytest.mark.parametrize("module", [gpipe, pipedream])
def test_the_drawing_in_the_docstring_is_what_happens(module):
    drawn = [row.split()[:10] for row in re.findall(r"^    stage \d   (.*)$", module.__doc__, re.MULTILINE)]
    times = simulate(lists(module.schedule, 3, 3 if module is gpipe else 8), {"F": 1, "B": 1})
    for row, ops, starts in zip(drawn, times.lists, times.start, strict=True):
        happens = {int(start): f"{op.kind}{op.chunk}" for op, start in zip(ops, starts, strict=True) if op.kind != "U"}
        assert row == [happens.get(slot, "..") for slot in range(10)]


def test_a_schedule_that_waits_in_a_circle_names_who_is_stuck():
    with pytest.raises(ValueError, match="stuck: rank 0 at 0B0, rank 1 at 1F1; waiting for 0F1, 1B0"):
        simulate([parse("0F0 0B0 0F1 0B1"), parse("1F1 1F0 1B1 1B0")], {"F": 1, "B": 1})


def test_a_cost_that_is_missing_is_asked_for_by_name():
    with pytest.raises(ValueError, match=r"no cost of B; give costs\['B'\]"):
        simulate([parse("0F0 0B0")], {"F": 1})
