"""Choosing: what the eight strategies cost on paper is what they take when every message is sent."""

from dataclasses import replace

import pytest

from lessons.choosing.case import Case
from lessons.choosing.rehearsal import PROGRAMS, bytes_to_send, rehearse
from lessons.choosing.strategies import CLOSED_FORMS, MEMORY, fits, memory, states, zero3_with_prefetching

SMALL = Case("ResNet-50", "V100", "EDR", batch=32, ranks=4)
BESIDE_THE_PIPELINE = [name for name in CLOSED_FORMS if name != "1F1B"]


def test_every_strategy_has_a_closed_form_and_a_program():
    assert list(CLOSED_FORMS) == list(PROGRAMS)


@pytest.mark.parametrize("strategy", BESIDE_THE_PIPELINE)
def test_a_step_takes_as_long_as_its_formula_says(strategy):
    assert rehearse(SMALL, strategy) == pytest.approx(CLOSED_FORMS[strategy](SMALL), rel=0.005)


@pytest.mark.parametrize("strategy", ["overlapped", "server", "tensor", "ZeRO-3"])
def test_in_mixed_precision_it_does_so_too_with_an_eighth_of_the_work_and_half_of_the_bytes(strategy):
    mixed = replace(SMALL, precision="mixed")
    assert mixed.compute == pytest.approx(SMALL.compute * 15.7 / 125) and mixed.nbytes == SMALL.nbytes / 2
    assert rehearse(mixed, strategy) == pytest.approx(CLOSED_FORMS[strategy](mixed), rel=0.01)


def test_mixed_precision_leaves_the_bytes_of_adams_states_and_halves_those_of_activations():
    single = Case("GPT-2 XL", "V100", "EDR", batch=1)
    mixed = replace(single, precision="mixed")
    held = states(single, "all-reduce")
    assert states(mixed, "all-reduce") == held
    assert memory(mixed, "all-reduce") - held == (memory(single, "all-reduce") - held) / 2


def test_a_pipeline_takes_no_longer_than_its_formula_says_where_links_are_fast():
    fast = replace(SMALL, bandwidth=100.0)
    assert 0.9 < rehearse(fast, "1F1B") / CLOSED_FORMS["1F1B"](fast) < 1.001


def test_a_pipeline_whose_links_are_slower_than_its_stages_takes_longer_than_its_formula():
    slow = replace(SMALL, bandwidth=0.1)
    assert rehearse(slow, "1F1B") > 1.1 * CLOSED_FORMS["1F1B"](slow)


@pytest.mark.parametrize("strategy", ["all-reduce", "server", "ZeRO-3"])
def test_twice_the_bandwidth_and_twice_the_speed_take_half_the_time(strategy):
    twice = replace(SMALL, latency=0.5, bandwidth=2.0, speed=2.0)
    assert CLOSED_FORMS[strategy](twice) == pytest.approx(CLOSED_FORMS[strategy](SMALL) / 2)


def test_what_divides_the_states_of_the_model_by_the_ranks_needs_less_memory():
    case = Case("GPT-2 XL", "V100", "EDR", batch=1)
    whole = memory(case, "all-reduce")
    assert whole == memory(case, "one machine") > memory(case, "server")
    assert max(memory(case, name) for name in ("1F1B", "tensor", "ZeRO-3")) < whole / 2


def test_with_prefetching_zero3_would_be_the_first_of_those_that_fit():
    c = Case("GPT-2 XL", "V100", "EDR", batch=1)
    fits_too = min(form(c) for name, form in CLOSED_FORMS.items() if fits(c, name))
    assert zero3_with_prefetching(c) < 0.7 * fits_too
    largest = max(c.itemsize * layer.parameters for layer in c.layers)
    assert memory(c, "ZeRO-3") + 2 * largest < MEMORY["V100"], "with one more layer and its gradient it fits still"


@pytest.mark.parametrize(("strategy", "gradients"), [("all-reduce", 1), ("overlapped", 1), ("ZeRO-3", 1.5)])
def test_a_rank_sends_so_many_gradients_around_the_ring(strategy, gradients):
    assert bytes_to_send(SMALL, strategy) == pytest.approx(gradients * 2 * 3 / 4 * SMALL.nbytes, rel=0.01)
