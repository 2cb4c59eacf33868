"""What ranks hold and what goes over the links, against the closed forms of the papers."""

import pytest

from algorithms.parts.pipeline.ops import parse, rematerialise
from theory import schedules
from theory.pipeline_memory import Sizes, in_flight, in_flight_until_weights, peak_bytes, traffic

A, IN, WEIGHTS, LATE = 100, 7, 40, 30


def sizes(stages, for_weights=None):
    late = None if for_weights is None else [for_weights] * stages
    return Sizes([IN] * stages, [A] * stages, [WEIGHTS] * stages, late)


def test_a_forward_takes_what_its_backward_frees():
    assert in_flight([parse("0F0 0F1 0B0 0F2 0B1 0B2")]) == [2]
    assert in_flight([parse("0F0 0I0 0F1 0I1 0W0 0W1")]) == [1]
    assert in_flight_until_weights([parse("0F0 0I0 0F1 0I1 0W0 0W1")]) == [2]


@pytest.mark.parametrize("chunks", [1, 4, 9])
@pytest.mark.parametrize("late", [False, True])
def test_rematerialisation_stores_the_inputs_of_all_and_everything_of_one(chunks, late):
    stored = schedules.lists("gpipe", 3, chunks)
    again = schedules.lists("gpipe", 3, chunks, recompute=True, late=late)
    assert peak_bytes(stored, sizes(3)) == [chunks * A] * 3
    assert peak_bytes(again, sizes(3)) == [chunks * IN + A] * 3


def test_1f1b_stores_few_micro_batches_with_rematerialisation_or_without():
    lists = schedules.lists("1f1b", 4, 8)
    again = [list(rematerialise(ops)) for ops in lists]
    assert peak_bytes(lists, sizes(4)) == [(4 - s) * A for s in range(4)]
    assert peak_bytes(again, sizes(4)) == [(4 - s) * IN + A for s in range(4)]


@pytest.mark.parametrize("stages", [2, 4, 8])
def test_zero_bubble_keeps_what_the_weights_need_a_little_longer(stages):
    h1 = peak_bytes(schedules.lists("zb_h1", stages, 4 * stages), sizes(stages, LATE))
    h2 = peak_bytes(schedules.lists("zb_h2", stages, 4 * stages), sizes(stages, LATE))
    assert h1 == [(stages - s) * A + s * LATE for s in range(stages)]
    assert h2 == [(2 * stages - 1 - 2 * s) * A + 2 * s * LATE for s in range(stages)]


def test_what_weights_need_is_everything_unless_told():
    assert peak_bytes(schedules.lists("zb_h1", 4, 16), sizes(4)) == [4 * A] * 4


@pytest.mark.parametrize("name", ["naive", "gpipe", "gpipe_early", "1f1b", "dapple_pb", "zb_h1", "zb_h2", "pipedream"])
def test_every_straight_pipeline_sends_the_same_bytes(name):
    over = traffic(schedules.lists(name, 4, 8), sizes(4))
    assert over == {link: 8 * IN for s in range(3) for link in ((s, s + 1), (s + 1, s))}


def test_thin_stages_cross_more_often_and_the_way_back_up_costs_as_much_as_the_way_down():
    twice = traffic(schedules.lists("interleaved", 4, 8), sizes(8))
    assert twice.total() == 2 * 8 * IN * (2 * 4 - 1)
    assert twice[3, 0] == twice[0, 3] == 8 * IN  # from the last rank to the first, and back
    v = traffic(schedules.lists("zb_v", 4, 8), sizes(8))
    assert v == {link: 2 * 8 * IN for s in range(3) for link in ((s, s + 1), (s + 1, s))}


@pytest.mark.parametrize("name", ["chimera", "dualpipe"])
def test_two_directions_send_as_much_as_one_and_the_gradients_of_every_stage(name):
    over = traffic(schedules.lists(name, 4, 8), sizes(4))
    sums = 4 * 2 * WEIGHTS  # two ranks per stage, 2 (2-1)/2 w each way
    assert over.total() == 2 * 8 * IN * 3 + sums
    assert over[0, 1] == 8 * IN and over[0, 3] == 2 * WEIGHTS


def test_boundaries_have_sizes_of_their_own():
    uneven = Sizes(inputs=[99, 5, 3], activations=[0] * 3, weights=[0] * 3)
    assert traffic(schedules.lists("1f1b", 3, 2), uneven) == {(0, 1): 10, (1, 0): 10, (1, 2): 6, (2, 1): 6}
