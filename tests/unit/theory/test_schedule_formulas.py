"""Closed forms that docstrings and book state, for all small sizes: where their conditions hold, and just outside."""

from itertools import product

import pytest

from theory import schedules
from theory.pipeline_memory import Sizes, in_flight, in_flight_until_weights, traffic
from theory.schedule_timing import simulate

SIZES = list(product(range(1, 9), range(1, 20)))  # stages, micro-batches


def within_spans(times):
    """Time each rank is idle between its own first and last op."""
    return [span - busy for span, busy in zip(times.span, times.busy, strict=True)]


@pytest.mark.parametrize(("f", "b"), [(1, 2), (3, 1)])
def test_gpipe_and_1f1b_idle_alike_however_few_micro_batches_there_are(f, b):
    for (stages, chunks), name in product(SIZES, ("gpipe", "1f1b")):
        idle = simulate(schedules.lists(name, stages, chunks), {"F": f, "B": b}).idle
        assert idle == pytest.approx([(stages - 1) * (f + b)] * stages), (name, stages, chunks)


@pytest.mark.parametrize(("f", "i", "w"), [(1, 1, 1), (2, 2, 1), (3, 5, 0), (10, 11, 6)])
def test_zb_h1_idles_as_its_formula_says_and_w_more_for_each_micro_batch_fewer_than_stages(f, i, w):
    for stages, chunks in SIZES:
        idle = simulate(schedules.lists("zb_h1", stages, chunks), {"F": f, "I": i, "W": w}).idle
        missing = max(0, stages - chunks)
        assert idle == pytest.approx([(stages - 1) * (f + i - w) + missing * w] * stages), (stages, chunks)


def test_zb_h1_holds_no_more_on_any_stage_than_1f1b_on_its_first():
    for stages, chunks in SIZES:
        most = in_flight(schedules.lists("1f1b", stages, chunks))[0]
        assert max(in_flight_until_weights(schedules.lists("zb_h1", stages, chunks))) == most == min(stages, chunks)


@pytest.mark.parametrize(("f", "i", "w"), [(1, 1, 1), (2, 2, 1), (3, 5, 0), (10, 11, 6)])
def test_zb_h2_idles_as_its_formula_says_with_all_numbers_of_micro_batches_that_it_takes(f, i, w):
    for stages, chunks in SIZES:
        if chunks < 2 * stages - 1:
            with pytest.raises(ValueError, match="do not fill"):
                schedules.lists("zb_h2", stages, chunks)
        else:
            times = simulate(schedules.lists("zb_h2", stages, chunks), {"F": f, "I": i, "W": w})
            assert max(within_spans(times)) == pytest.approx((stages - 1) * (f + i - 2 * w)), (stages, chunks)


def test_zb_v_has_no_idle_slot_from_2s_minus_1_micro_batches_on_and_two_for_each_one_fewer():
    for stages, chunks in SIZES:
        times = simulate(schedules.lists("zb_v", stages, chunks), dict.fromkeys("FIW", 1))
        missing = max(0, 2 * stages - 1 - chunks) if stages > 1 else 0
        assert max(within_spans(times)) == 2 * missing, (stages, chunks)
        assert max(in_flight(times.lists)) == min(2 * stages, 2 * chunks)


def test_interleaved_stages_hold_what_their_formula_says_but_never_more_than_there_is():
    for ranks, units, pieces in product(range(1, 7), range(1, 5), range(1, 5)):
        chunks = ranks * units
        lists = schedules.lists("interleaved", ranks, chunks, pieces=pieces)
        formula = [2 * (ranks - 1 - rank) + (pieces - 1) * ranks + 1 for rank in range(ranks)]
        assert in_flight(lists) == [min(chunks * pieces, held) for held in formula], (ranks, chunks, pieces)
        idle = simulate(lists, {"F": 1 / pieces, "B": 2 / pieces}).idle
        assert idle == pytest.approx([3 * (ranks - 1) / pieces] * ranks)


def test_chimera_sums_2d_with_one_pipeline_each_way_and_idles_longer_in_less_than_a_unit():
    tried = 0
    for ranks, chunks, pipes in product((2, 4, 6, 8), range(1, 25), (1, 2, 3, 4)):
        try:
            lists = schedules.lists("chimera", ranks, chunks, pipes=pipes)
        except ValueError:
            continue
        sums = traffic(lists, Sizes([0] * ranks, [0] * ranks, [1] * ranks)).total()  # d is 1 for each stage
        assert sums == pytest.approx(2 * (2 * pipes - 1) * ranks)
        idle, formula = max(simulate(lists, {"F": 1, "B": 1}).idle), ranks / pipes - 2
        assert idle == formula if chunks % ranks == 0 else idle > formula
        tried += 1
    assert tried > 40
