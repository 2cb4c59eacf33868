"""Schedules of the literature: their orders, their closed forms, their printed numbers."""

import importlib
import re
from itertools import islice, pairwise, product

import pytest

import algorithms
from algorithms.parts.pipeline.ops import Op, Overlapped, check, spell
from algorithms.pipelined import dapple, gpipe, pipedream, pipedream_2bw, zb_auto
from tests.quotes import quote
from theory import schedule_systolic, schedules
from theory.pipeline_memory import Sizes, in_flight, in_flight_until_weights, peak_bytes
from theory.schedule_timing import bubble_of_span, bubble_of_total, simulate

UNIT = {"F": 1, "B": 2, "R": 1, "I": 1, "W": 1}
GOLDEN = {  # of the book; capitals are the first half of the stages, small letters the second, where a rank holds two
    ("1f1b", 4, 6): """
        F0 F1 F2 F3 B0 F4 B1 F5 B2 B3 B4 B5
        F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5
        F0 F1 B0 F2 B1 F3 B2 F4 B3 F5 B4 B5
        F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5
    """,
    ("gpipe", 4, 3): """
        F0 F1 F2 B2 B1 B0
        F0 F1 F2 B2 B1 B0
        F0 F1 F2 B2 B1 B0
        F0 F1 F2 B2 B1 B0
    """,
    ("interleaved", 2, 4): """
        F0 F1 f0 f1 F2 b0 F3 b1 f2 B0 f3 B1 b2 b3 B2 B3
        F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 f2 b2 f3 b3 B2 B3
    """,
    ("zb_h1", 4, 6): """
        F0 F1 F2 F3 I0 W0 F4 I1 W1 F5 I2 W2 I3 W3 I4 W4 I5 W5
        F0 F1 F2 I0 F3 I1 W0 F4 I2 W1 F5 I3 W2 I4 W3 I5 W4 W5
        F0 F1 I0 F2 I1 F3 I2 W0 F4 I3 W1 F5 I4 W2 I5 W3 W4 W5
        F0 I0 F1 I1 F2 I2 F3 I3 W0 F4 I4 W1 F5 I5 W2 W3 W4 W5
    """,
    ("zb_h2", 4, 8): """
        F0 F1 F2 F3 F4 F5 F6 I0 W0 F7 I1 W1 I2 W2 I3 W3 I4 W4 I5 W5 I6 W6 I7 W7
        F0 F1 F2 F3 F4 I0 F5 I1 F6 I2 W0 F7 I3 W1 I4 W2 I5 W3 I6 W4 I7 W5 W6 W7
        F0 F1 F2 I0 F3 I1 F4 I2 F5 I3 F6 I4 W0 F7 I5 W1 I6 W2 I7 W3 W4 W5 W6 W7
        F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 F5 I5 F6 I6 W0 F7 I7 W1 W2 W3 W4 W5 W6 W7
    """,
    ("zb_v", 2, 4): """
        F0 F1 F2 f0 i0 w0 f1 i1 w1 F3 I0 W0 f2 i2 w2 I1 W1 f3 i3 w3 I2 W2 I3 W3
        F0 f0 F1 f1 i0 w0 F2 I0 W0 f2 i1 w1 F3 I1 W1 f3 i2 w2 I2 i3 I3 W2 w3 W3
    """,
    ("chimera", 4, 4): """
        F0 F1 f2 b2 f3 b3 B0 B1
        F0 f2 F1 f3 b2 B0 b3 B1
        F2 f0 F3 f1 b0 B2 b1 B3
        F2 F3 f0 b0 f1 b1 B2 B3
    """,
    ("dualpipe", 4, 8): """
        F0 F1 F2 f4 i4 w4 f5 F3+b5 f6+B0 b6 f7+B1 b7 I2 W2 I3 W3
        F0 f4 F1 f5 F2 b4 f6+B0 F3+b5 f7+B1 b6 B2 i7 I3 w7 W3
        F4 f0 F5 f1 F6 b0 f2+B4 F7+b1 f3+B5 b2 B6 i3 I7 w3 W7
        F4 F5 F6 f0 i0 w0 f1 F7+b1 f2+B4 b2 f3+B5 b3 I6 W6 I7 W7
    """,
}


def short(lists):
    """Without updates and stages; small letters are the second half of the stages."""
    second = (1 + max(op.stage for ops in lists for op in ops)) / 2 if len({op.stage for op in lists[0]}) > 1 else 1e9

    def name(op):
        text = f"{op.kind}{op.chunk}"
        return (text if op.stage < second else text.lower()) + "+" * isinstance(op, Overlapped)

    return [" ".join(name(op) for op in ops if op.kind != "U").replace("+ ", "+") for ops in lists]


@pytest.mark.parametrize(("name", "ranks", "chunks"), GOLDEN, ids=[name for name, _, _ in GOLDEN])
def test_the_order_is_that_of_the_book(name, ranks, chunks):
    golden = [line.strip() for line in GOLDEN[name, ranks, chunks].strip().splitlines()]
    assert short(schedules.lists(name, ranks, chunks)) == golden


def test_gpipe_goes_back_in_reverse_with_a_forward_once_more_if_it_kept_only_the_inputs():
    assert spell(gpipe.schedule(0, 2, 2, recompute=True)) == "0F0 0F1 0R1 0B1 0R0 0B0 0U0"
    assert spell(gpipe.schedule(0, 2, 2, recompute=True, late=True)) == "0F0 0F1 0R1+0B1 0R0+0B0 0U0"


@pytest.mark.parametrize("name", ["gpipe_early", "gpipe_late"])
@pytest.mark.parametrize(("stages", "chunks"), [(2, 3), (4, 8)])
def test_if_the_last_micro_batch_is_stored_as_a_whole_the_step_is_shorter_by_a_forward(name, stages, chunks):
    spared, again = (schedules.lists(name, stages, chunks, except_last=on) for on in (True, False))
    check(spared)
    assert all(sum(op.kind == "R" for op in ops) == chunks - 1 for ops in spared)
    assert simulate(spared, UNIT).makespan == simulate(again, UNIT).makespan - 1
    sizes = Sizes([7] * stages, [100] * stages, [0] * stages)
    assert peak_bytes(spared, sizes) == [(chunks - 1) * 7 + 100] * stages


def test_pipedream_is_1f1b_without_end_and_an_update_after_every_backward():
    endless = list(islice(pipedream.plan(4, pipedream.Settings()).endless_ops_of(1), 23))
    assert spell(endless[:11]) == "1F0 1F1 1F2 1B0 1U0 1F3 1B1 1U1 1F4 1B2 1U2"
    finite = schedules.lists("pipedream", 4, 100)[1]
    assert endless == finite[:23]
    flushed = [op for op in schedules.lists("1f1b", 4, 100)[1] if op.kind != "U"]
    assert [op for op in finite if op.kind != "U"] == flushed
    after = [later for earlier, later in pairwise(endless) if earlier.kind == "B"]
    assert after and all(op.kind == "U" for op in after)


def test_the_systolic_pipeline_follows_its_slots():
    stages, patterns = 3, 7
    for stage in range(stages):
        slots = [[("F", k - stage), ("B", k - 2 * (stages - 1) + stage)] for k in range(patterns + 2 * stages)]
        rule = [(kind, i) for slot in slots for kind, i in slot if 0 <= i < patterns]
        ops = [op[::2] for op in schedule_systolic.schedule(stage, stages, patterns) if op.kind != "U"]
        assert ops == rule


def test_2bw_updates_once_per_mini_batch():
    ops = spell(pipedream_2bw.schedule(1, 3, 6, per_update=3))
    assert ops == "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1U0 1F4 1B3 1F5 1B4 1B5 1U1"


SHAPES = [(1, 2), (2, 4), (2, 6), (4, 8), (4, 12), (6, 12), (8, 16), (3, 9), (5, 10)]


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_every_stage_does_every_micro_batch_once_in_order_and_nobody_waits_for_ever(name):
    possible = [s for s in SHAPES if s[0] % 2 == 0 or name not in ("chimera", "dualpipe")]
    for ranks, chunks in possible:
        lists = schedules.lists(name, ranks, chunks)
        check(lists)
        stages = 1 + max(op.stage for ops in lists for op in ops)
        forwards = [op for ops in lists for op in ops if op.kind == "F"]
        assert len(forwards) == stages * chunks
        for latency in (0, 0.1, 1):
            assert simulate(lists, UNIT, latency).makespan > 0


@pytest.mark.parametrize("name", schedules.SCHEDULES)
def test_the_last_thing_a_rank_does_is_to_update_all_it_holds(name):
    for ops in schedules.lists(name, 4, 8):
        held = {op.stage for op in ops}
        assert {op.stage for op in ops if op.kind == "U"} == held
        assert all(op.kind == "U" for op in ops[-len(held) :])


@pytest.mark.parametrize(
    ("name", "ranks", "chunks", "options", "costs", "makespan", "idle"),
    [
        ("gpipe", 4, 8, {}, (1, 2), 33, 9),
        ("1f1b", 4, 8, {}, (1, 2), 33, 9),
        ("gpipe", 4, 8, {}, (1, 1), 22, 6),
        ("1f1b", 4, 8, {}, (1, 1), 22, 6),
        ("gpipe", 8, 32, {}, (1, 2), 117, 21),
        ("1f1b", 8, 32, {}, (1, 2), 117, 21),
        ("gpipe_late", 4, 8, {}, (1, 2), 44, 12),
        ("gpipe_early", 4, 8, {}, (1, 2), 41, 9),
        ("interleaved", 4, 8, {}, (0.5, 1), 28.5, 4.5),
        ("interleaved", 4, 16, {"pieces": 4}, (0.25, 0.5), 50.25, 2.25),
        ("zb_h1", 4, 8, {}, (1, 1, 1), 27, 3),
        ("zb_h1", 4, 8, {}, (2, 2, 1), 49, 9),
        ("zb_h1", 4, 8, {}, (10, 11, 6), 261, 45),
        ("zb_h1", 4, 8, {}, (1, 1, 2), 35, 3),  # w > f: not 0
        ("zb_h2", 4, 8, {}, (1, 1, 1), 27, 3),
        ("zb_v", 4, 8, {}, (1, 1, 1), 51, 3),
        ("chimera", 4, 4, {}, (1, 1), 10, 2),
        ("chimera", 4, 4, {}, (1, 2), 16, 4),
        ("chimera", 8, 8, {}, (1, 1), 22, 6),
        ("chimera", 8, 8, {}, (1, 2), 36, 12),
        ("dualpipe", 4, 8, {}, (1, 1, 1), 26, 2),
        ("dualpipe", 8, 20, {}, (1, 1, 1), 66, 6),
        ("dualpipe", 16, 40, {}, (1, 1, 1), 134, 14),
        ("dualpipe_v", 4, 10, {}, (1, 1, 1), 66, 6),
    ],
)
def test_the_worked_values_of_the_book(name, ranks, chunks, options, costs, makespan, idle):
    f, b, w = costs if len(costs) == 3 else (costs[0], costs[1], 0)
    lists = schedules.lists(name, ranks, chunks, **options)
    times = simulate(lists, {"F": f, "R": f, "I": b, "W": w, "B": b + w})
    assert times.makespan == makespan
    assert times.idle == [idle] * ranks


@pytest.mark.parametrize(
    ("name", "costs", "idle"),
    [
        ("zb_h2", (1, 1, 1), 0),
        ("zb_h2", (1, 1, 2), 0),  # not negative, as the formula would have it
        ("zb_v", (1, 1, 1), 0),
        ("zb_v", (1, 1.2, 0.8), 2.4),
    ],
)
def test_the_idle_time_within_a_ranks_span(name, costs, idle):
    times = simulate(schedules.lists(name, 4, 8), dict(zip("FIW", costs, strict=True)))
    spans = [span - busy for span, busy in zip(times.span, times.busy, strict=True)]
    assert max(spans) == pytest.approx(idle)
    if costs == (1, 1, 1):
        assert spans == [0] * 4  # every rank works 24 (ZB-V: 48) without a gap
        assert set(times.span) == {24 if name == "zb_h2" else 48}


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("chunks", [1, 3, 8, 24])
def test_gpipe_idles_twice_through_the_pipeline_and_its_latency(stages, chunks):
    for (f, b), latency in product([(1, 1), (1, 2), (3, 2)], (0, 0.25, 1)):
        times = simulate(schedules.lists("gpipe", stages, chunks), {"F": f, "B": b}, latency)
        assert times.idle == pytest.approx([(stages - 1) * (f + b + 2 * latency)] * stages)


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_one_rank_at_a_time_works_in_a_naive_pipeline(chunks):
    costs = {
        (kind, stage): cost
        for stage, both in enumerate([(1, 2), (3, 1), (2, 2)])
        for kind, cost in zip("FB", both, strict=True)
    }
    lists = schedules.lists("naive", 3, chunks)
    assert simulate(lists, costs, 0.5).makespan == chunks * (sum(costs.values()) + 2 * 2 * 0.5)
    even = simulate(lists, UNIT)
    assert even.busy == pytest.approx([even.makespan / 3] * 3)
    assert (
        simulate(schedules.lists("gpipe", 3, 1), costs, 0.5).makespan
        == simulate(schedules.lists("naive", 3, 1), costs, 0.5).makespan
    )


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_1f1b_pays_latency_in_every_round_of_the_steady_state(stages, rounds):
    for (f, b), latency in product([(1, 1), (1, 2), (3, 2)], (0, 0.1, 0.5, 1)):
        times = simulate(schedules.lists("1f1b", stages, rounds * stages), {"F": f, "B": b}, latency)
        idle = (stages - 1) * (f + b) + 2 * latency * ((stages - 1) * rounds + stages - 2)
        assert times.idle == pytest.approx([idle] * stages)


@pytest.mark.parametrize("stages", [1, 3, 4])
@pytest.mark.parametrize("chunks", [1, 2, 5, 6, 7])
@pytest.mark.parametrize(("f", "b"), [(1, 1), (1, 2), (3, 2)])
def test_without_latency_1f1b_takes_as_long_as_gpipe_whatever_divides_what(stages, chunks, f, b):
    for name in ("gpipe", "1f1b", "dapple_pb"):
        times = simulate(schedules.lists(name, stages, chunks), {"F": f, "B": b})
        assert times.makespan == (chunks + stages - 1) * (f + b)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("latency", [0, 0.1, 0.5, 1])
def test_twice_as_many_on_their_way_hide_the_latency(stages, latency):
    f, b = 1, 1
    times = simulate(schedules.lists("dapple_pb", stages, 4 * stages), {"F": f, "B": b}, latency)
    assert max(times.idle) == pytest.approx((stages - 1) * (f + b + 2 * latency))  # while latency <= (f+b)/2


def test_a_little_latency_costs_1f1b_more_than_gpipe_and_more_on_their_way_repair_it():
    idle = {
        name: simulate(schedules.lists(name, 4, 16), {"F": 1, "B": 1}, 1).idle[0]
        for name in ("gpipe", "1f1b", "dapple_pb")
    }
    assert idle == {"gpipe": 12, "1f1b": 34, "dapple_pb": 12}


@pytest.mark.parametrize("latency", [0, 0.1, 0.5, 1])
def test_with_latency_1f1b_has_a_longer_period(latency):
    times = simulate(schedules.lists("1f1b", 4, 80), {"F": 1, "B": 2}, latency)
    end = dict(zip(times.lists[0], times.end[0], strict=True))
    assert end[Op("B", 0, 60)] - end[Op("B", 0, 20)] == pytest.approx(40 * (3 + 2 * latency * 3 / 4))


@pytest.mark.parametrize("pieces", [2, 3, 4])
@pytest.mark.parametrize(("ranks", "chunks"), [(2, 4), (4, 8), (4, 16), (8, 8)])
def test_interleaving_divides_the_bubble(ranks, chunks, pieces):
    lists = schedules.lists("interleaved", ranks, chunks, pieces=pieces)
    times = simulate(lists, {"F": 1 / pieces, "B": 2 / pieces})
    assert times.idle == pytest.approx([(ranks - 1) * 3 / pieces] * ranks)
    if chunks > ranks:
        assert in_flight(lists) == [2 * (ranks - 1 - r) + (pieces - 1) * ranks + 1 for r in range(ranks)]


def test_interleaving_with_one_stage_per_rank_is_not_1f1b():
    lists = schedules.lists("interleaved", 4, 8, pieces=1)
    assert simulate(lists, UNIT).makespan == 33
    assert in_flight(lists) == [7, 5, 3, 1]  # where 1F1B holds 4, 3, 2, 1


@pytest.mark.parametrize("ranks", [2, 4, 6, 8, 16])
@pytest.mark.parametrize("units", [1, 2, 3])
def test_chimera_has_a_place_for_every_slot_and_idles_s_minus_2(ranks, units):
    lists = schedules.lists("chimera", ranks, units * ranks)
    assert {len(ops) for ops in lists} == {2 * units * ranks + 2}
    times = simulate(lists, {"F": 1, "B": 1})
    assert times.idle == [ranks - 2] * ranks
    assert times.makespan == 2 * units * ranks + ranks - 2
    if units == 1:
        assert simulate(lists, UNIT).idle == [2 * (ranks - 2)] * ranks
        assert in_flight(lists)[: ranks // 2] == [min(ranks // 2 + 1 + r, ranks) for r in range(ranks // 2)]


def test_chimera_with_more_pipelines_idles_less():
    for pipes, idle in ((1, 6), (2, 2), (4, 0)):
        lists = schedules.lists("chimera", 8, 8, pipes=pipes)
        times = simulate(lists, {"F": 1, "B": 1})
        assert times.idle == [8 // pipes - 2] * 8 == [idle] * 8
        assert bubble_of_total(times) == (8 - 2 * pipes) / (2 * pipes * 8 + 8 - 2 * pipes)
        held = in_flight(lists)
        assert (min(held), max(held)) == (8 - 8 // (2 * pipes) + 1, 8)


@pytest.mark.parametrize("ranks", [2, 4, 6, 8])
@pytest.mark.parametrize("units", [1, 2, 3])
def test_where_backward_takes_twice_as_long_chimeras_units_fit_together_only_if_forwards_take_two(ranks, units):
    chunks = 2 * ranks * units
    pairs, single = (schedules.lists("chimera", ranks, chunks, doubling=doubling) for doubling in (True, False))
    check(pairs)
    assert simulate(pairs, UNIT).idle == [2 * (ranks - 2)] * ranks
    assert simulate(single, UNIT).idle == [(2 * units + 1) * (ranks - 2)] * ranks
    assert max(in_flight(pairs)) == 2 * max(in_flight(single)) == 2 * ranks


def test_forwards_of_two_go_through_several_pipelines_each_way_as_well():
    for pipes in (2, 4):
        lists = schedules.lists("chimera", 8, 32, pipes=pipes, doubling=True)
        check(lists)
        assert simulate(lists, UNIT).idle == [2 * (8 // pipes - 2)] * 8


@pytest.mark.parametrize("ranks", [2, 4, 6])
def test_chimera_takes_fewer_micro_batches_than_ranks(ranks):
    for chunks in range(2, ranks):
        lists = schedules.lists("chimera", ranks, chunks)
        check(lists)
        assert len({op for ops in lists for op in ops if op.kind == "F"}) == ranks * chunks


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize(("f", "i", "w"), [(1, 1, 1), (2, 2, 1), (10, 11, 6), (3, 5, 0), (4, 3, 2)])
def test_zero_bubble_idles_as_its_table_says(stages, f, i, w):
    h1 = simulate(schedules.lists("zb_h1", stages, 3 * stages), {"F": f, "I": i, "W": w})
    assert h1.idle == [(stages - 1) * (f + i - w)] * stages
    h2 = simulate(schedules.lists("zb_h2", stages, 3 * stages), {"F": f, "I": i, "W": w})
    spans = [span - busy for span, busy in zip(h2.span, h2.busy, strict=True)]
    assert max(spans) == pytest.approx((stages - 1) * (f + i - 2 * w))
    assert h2.idle == [(stages - 1) * max(f, f + i - 2 * w)] * stages


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_zero_bubble_holds_what_its_table_says(stages):
    h1, h2 = (schedules.lists(name, stages, 3 * stages) for name in ("zb_h1", "zb_h2"))
    assert in_flight(h1) == [stages - s for s in range(stages)]
    assert in_flight_until_weights(h1) == [stages] * stages
    assert in_flight(h2) == [2 * (stages - 1 - s) + 1 for s in range(stages)]
    assert in_flight_until_weights(h2) == [2 * stages - 1] * stages
    assert in_flight(schedules.lists("zb_v", stages, 3 * stages)) == [2 * stages] * stages


def halved(lists):
    """Every backward that is not overlapped sends the gradient of the inputs off before that of the weights."""
    return [
        [
            half
            for before, op in pairwise([None, *ops])
            for half in (
                [Op("I", *op[1:]), Op("W", *op[1:])] if op.kind == "B" and type(before) is not Overlapped else [op]
            )
        ]
        for ops in lists
    ]


def test_sending_the_gradient_of_the_inputs_before_that_of_the_weights_shortens_1f1b_already():
    costs = {"F": 1, "I": 2, "W": 1.5, "B": 3.5}
    whole = schedules.lists("1f1b", 4, 8)
    assert simulate(whole, costs).idle == [3 * (1 + 3.5)] * 4
    assert simulate(halved(whole), costs).idle == [3 * (1 + 2)] * 4


@pytest.mark.parametrize(("ranks", "chunks"), [(2, 4), (4, 8), (8, 20), (16, 40)])
def test_dualpipe_idles_as_its_table_says(ranks, chunks):
    both = simulate(schedules.lists("dualpipe", ranks, chunks), {"F": 1, "B": 2, "I": 1, "W": 1, "F+B": 3})
    assert both.idle == [(ranks / 2 - 1) * (3 + 2 - 3)] * ranks
    assert in_flight(both.lists) == [ranks + 1] * ranks
    half = schedules.lists("dualpipe_v", ranks // 2, chunks // 2)
    assert simulate(half, {"F": 1, "B": 2, "I": 1, "W": 1, "F+B": 3}).makespan == both.makespan


@pytest.mark.parametrize(
    ("costs", "formula", "whole", "halves"), [((2, 2, 1, 5), 15, 15, 14), ((1, 1.2, 0.8, 3), 7.8, 7.2, 6.4)]
)
def test_dualpipe_is_only_near_its_formula_where_costs_differ(costs, formula, whole, halves):
    f, i, w, both = costs
    lists = schedules.lists("dualpipe", 8, 20)
    prices = {"F": f, "B": i + w, "I": i, "W": w, "F+B": both}
    assert (8 / 2 - 1) * (both + i + w - 3 * w) == pytest.approx(formula)
    assert simulate(lists, prices).idle == pytest.approx([whole] * 8)
    assert simulate(halved(lists), prices).idle == pytest.approx([halves] * 8)


@pytest.mark.parametrize("stages", [1, 2, 4, 7])
@pytest.mark.parametrize("chunks", [1, 3, 12])
def test_1f1b_holds_few_micro_batches_where_gpipe_holds_all(stages, chunks):
    assert in_flight(schedules.lists("gpipe", stages, chunks)) == [chunks] * stages
    few = in_flight(schedules.lists("1f1b", stages, chunks))
    assert few == [min(chunks, stages - stage) for stage in range(stages)]
    twice = in_flight(schedules.lists("dapple_pb", stages, chunks))
    assert twice == [min(chunks, 2 * (stages - stage) - 1) for stage in range(stages)]
    capped = [list(dapple.schedule(stage, stages, chunks, "PB", cap=3)) for stage in range(stages)]
    assert in_flight(capped) == [min(chunks, 3, 2 * (stages - stage) - 1) for stage in range(stages)]


def test_the_slowest_stage_sets_the_period_of_an_endless_pipeline():
    costs = {("F", 0): 1, ("B", 0): 2, ("F", 1): 2, ("B", 1): 3, ("F", 2): 1, ("B", 2): 2, ("F", 3): 0.5, ("B", 3): 1}
    times = simulate(schedules.lists("pipedream", 4, 60), costs)
    end = dict(zip(times.lists[0], times.end[0], strict=True))
    assert end[Op("B", 0, 40)] - end[Op("B", 0, 30)] == pytest.approx(10 * 5)


def test_what_is_on_its_way_times_the_period_is_the_time_of_a_round_trip():
    times = simulate(schedules.lists("pipedream", 4, 60), {"F": 1, "B": 2}, 0.5)
    start, end = (dict(zip(times.lists[0], ts, strict=True)) for ts in (times.start[0], times.end[0]))
    period = (end[Op("B", 0, 48)] - end[Op("B", 0, 28)]) / 20
    mean = sum(end[Op("B", 0, i)] - start[Op("F", 0, i)] for i in range(28, 48)) / 20
    held = mean / period  # Little's law
    assert 3 < held <= 4  # the fourth arrives a little after the first has left


PROFILES = [  # S, M, forward, backward of inputs, of weights, transfer (ms); printed bubble rates of 1F1B, ZB-H1, ZB-H2
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585, 0.1083),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242, 0.0837),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674, 0.0444),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323, 0.0698),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045, 0.0559),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554, 0.0294),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552, 0.1397, 0.0672),
    (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082, 0.1088, 0.0516),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251, 0.0576, 0.0266),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646, 0.1421, 0.0641),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168, 0.1106, 0.0490),
]
INTERLEAVED = [(3, 0.1055), (3, 0.0818), (3, 0.0443), (4, 0.0808), (4, 0.0628), (4, 0.0320)]
INTERLEAVED += [(3, 0.1104), (3, 0.0852), (3, 0.0445), (2, 0.1493), (2, 0.1164)]  # pieces, printed rate of 1F1B-I


@pytest.mark.parametrize("row", PROFILES, ids=lambda row: f"{row[0]}x{row[1]}-{row[2]}")
def test_the_zero_bubble_papers_table_5_comes_out_to_four_digits(row):
    stages, chunks, f, i, w, latency, *printed = row
    costs = {"F": f, "I": i, "W": w, "B": i + w}
    rates = [
        bubble_of_span(simulate(schedules.lists(name, stages, chunks), costs, latency))
        for name in ("1f1b", "zb_h1", "zb_h2")
    ]
    assert [round(rate, 4) for rate in rates] == printed


def test_where_all_passes_take_equally_long_zb_1p_is_h1_and_zb_2p_has_no_gap():
    for stages in (2, 4, 8):
        assert schedules.lists("zb_1p", stages, 3 * stages) == schedules.lists("zb_h1", stages, 3 * stages)
        times = simulate(schedules.lists("zb_2p", stages, 3 * stages), dict.fromkeys("FIW", 1))
        assert times.span == [3 * 3 * stages] * stages


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("costs", [(1, 0, 0, 0), (0, 1, 1, 0.5), (2, 1, 3, 0.2), (1, 2, 0, 1)])
def test_schedules_are_found_for_any_times(costs, limit):
    for stages in (1, 2, 5):
        for chunks in (1, 2, 7):
            lists = zb_auto.best(stages, chunks, limit * stages, *costs)
            check(lists)
            assert simulate(lists, dict(zip("FIW", costs, strict=False)), costs[3]).makespan > 0


@pytest.mark.parametrize(("row", "pieces", "printed"), [(r, *p) for r, p in zip(PROFILES, INTERLEAVED, strict=True)])
def test_the_zero_bubble_papers_interleaved_column_comes_out_to_four_thousandths(row, pieces, printed):
    stages, chunks, f, i, w, latency, *_ = row
    lists = schedules.lists("interleaved", stages, chunks, pieces=pieces)
    rate = bubble_of_span(simulate(lists, {"F": f / pieces, "B": (i + w) / pieces}, latency))
    assert 0 <= rate - printed < 0.004


@pytest.mark.parametrize(
    ("name", "ranks", "chunks", "options", "sentence"),
    [
        ("interleaved", 4, 9, {}, "9 micro-batches … 4 ranks … 2 equal groups … 8 or 10"),
        ("interleaved", 4, 11, {}, "11 micro-batches … 4 ranks … 2 equal groups … 10 or 12"),
        ("zb_interleaved", 2, 7, {}, "7 micro-batches … 2 ranks … 3 equal groups … 6 or 8"),
        ("looped_bfs", 4, 8, {"pieces": 0}, "0 stages per rank"),
        ("interleaved", 4, 8, {"pieces": 0}, "0 stages per rank"),
        ("chimera", 3, 3, {}, "3 ranks … Chimera … even number"),
        ("chimera", 4, 6, {}, "4 ranks … 6 micro-batches … multiple of 4, or fewer"),
        ("chimera", 8, 8, {"pipes": 3}, "3 pipelines … 8 ranks … 1, 2 or 4"),
        (
            "chimera",
            4,
            12,
            {"doubling": True},
            "4 ranks … pairs … 12 micro-batches … multiple of 8",
        ),
        ("chimera", 4, 5, {"doubling": True}, "5 micro-batches … pairs … even number"),
        ("chimera", 4, 2, {"doubling": True}, "2 micro-batches … 2 pipelines … 4 or more"),
        ("chimera", 8, 2, {"pipes": 2}, "2 micro-batches … 4 pipelines … 4 or more"),
        ("zb_h2", 4, 6, {}, "6 micro-batches … 4 ranks … ZB-H2 … 7 or more"),
        ("dualpipe", 3, 8, {}, "3 ranks … DualPipe … even number"),
        ("dualpipe", 4, 9, {}, "9 micro-batches … 4 ranks … even number, 8 or more"),
        ("dualpipe", 4, 6, {}, "6 micro-batches … 4 ranks"),
        ("dualpipe_v", 4, 7, {}, "7 micro-batches … 4 ranks … 8 or more"),
        ("pipedream_2bw", 4, 8, {"per_update": 2}, "2 micro-batches … 4 ranks … 3"),
        ("pipedream_2bw", 4, 7, {}, "7 micro-batches … updates of 4 … multiple of 4"),
        ("1f1b", 4, 8, {"policy": "PC"}, "'PC' … PA"),
        ("1f1b", 4, 8, {"cap": 0}, "cap of 0"),
        ("gpipe", 0, 8, {}, "8 micro-batches on 0 ranks … at least 1 of each"),
        ("zb_3", 4, 8, {}, "'zb_3' … naive, gpipe"),
    ],
)
def test_numbers_for_which_there_is_no_schedule_are_refused_with_those_for_which_there_is(
    name, ranks, chunks, options, sentence
):
    with pytest.raises(ValueError, match=quote(sentence)):
        schedules.lists(name, ranks, chunks, **options)


DRAWN = {  # where it is drawn: the schedule, ranks, chunks and options
    "schedule_naive": ("naive", 3, 2, {}),
    "gpipe": ("gpipe", 3, 3, {}),
    "dapple": ("1f1b", 3, 4, {}),
    "one_f_one_b": ("1f1b", 3, 4, {}),
    "interleaved": ("interleaved", 2, 4, {}),
    "looped_bfs": ("looped_bfs", 2, 4, {}),
    "chimera": ("chimera", 4, 4, {}),
    "zb_h1": ("zb_h1", 3, 4, {}),
    "zb_h2": ("zb_h2", 3, 5, {}),
    "zb_auto": ("zb_2p", 3, 4, {}),
    "zb_interleaved": ("zb_interleaved", 2, 4, {}),
    "zb_v": ("zb_v", 2, 4, {}),
    "v_half": ("v_half", 3, 4, {}),
    "v_min": ("v_min", 3, 4, {}),
    "dualpipe": ("dualpipe", 2, 4, {}),
    "dualpipe_v": ("dualpipe_v", 2, 4, {}),
    "pipemare": ("pipemare", 3, 8, {}),
    "pipedream": ("pipedream", 3, 8, {}),
    "spectrain": ("pipedream", 3, 8, {}),
    "pipedream_2bw": ("pipedream_2bw", 3, 6, {}),
    "xpipe": ("pipedream_2bw", 3, 8, {"per_update": 2}),
}


def module(name):
    room = {"schedule_naive": "theory", "one_f_one_b": "algorithms.parts.pipeline"}.get(name, "algorithms.pipelined")
    return importlib.import_module(f"{room}.{name}")


@pytest.mark.parametrize("name", DRAWN)
def test_the_drawing_in_the_docstring_is_what_happens(name):
    drawn = [
        row.split("        ")[0].split()
        for row in re.findall(r"^    (?:rank|stage) \d   (.*)$", module(name).__doc__, re.MULTILINE)
    ]
    schedule, ranks, chunks, options = DRAWN[name]
    lists = schedules.lists(schedule, ranks, chunks, **options)
    times = simulate(lists, dict.fromkeys([*"FBIW", "F+B"], 1))
    named = [line.replace("+", " ").split() for line in short(lists)]
    for row, names, ops, starts in zip(drawn, named, lists, times.start, strict=True):
        cells = {}
        for name, start in zip(names, (at for op, at in zip(ops, starts, strict=True) if op.kind != "U"), strict=True):
            cells[int(start)] = f"{cells[int(start)]}+{name}" if int(start) in cells else name
        assert row == [cells.get(slot, "..") for slot in range(len(row))]


def test_every_schedule_that_an_algorithm_declares_can_be_studied():
    declared = [name for one in algorithms.names() for name in algorithms.find(one).schedules]
    assert sorted(declared) == sorted(set(schedules.SCHEDULES) - {"naive", "systolic"})


def test_every_schedule_has_a_title_of_its_own():
    assert [*schedules.TITLES] == [*schedules.SCHEDULES]
    assert len({*schedules.TITLES.values()}) == len(schedules.TITLES)
