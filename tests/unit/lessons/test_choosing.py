"""Choosing: what the eight strategies cost on paper is what they take when every message is sent."""

from dataclasses import replace

import pytest

from lessons.choosing.case import Case
from lessons.choosing.rehearsal import PROGRAMS, rehearse
from lessons.choosing.strategies import CLOSED_FORMS, MEMORY, fits, memory, states
from theory.published_models import FLOAT32

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
    weights = [FLOAT32 * layer.parameters for layer in c.layers]
    gather, work = [c.ring(n) / 2 for n in weights], [c.seconds([layer]) / 3 for layer in c.layers]
    # while a layer computes, its neighbour's weights come in; in backward the other neighbour's gradients go out
    forward = gather[0] + sum(map(max, work, [*gather[1:], 0.0]))
    port = [come + go for come, go in zip([0.0, *gather], [*gather[1:], 0.0], strict=False)]
    backward = gather[-1] + sum(max(2 * w, busy) for w, busy in zip(work, port, strict=True)) + gather[0]
    assert forward + backward < 0.7 * min(form(c) for name, form in CLOSED_FORMS.items() if fits(c, name))
    assert memory(c, "ZeRO-3") + 2 * max(weights) < MEMORY["V100"], "with one more layer and its gradient it fits still"
