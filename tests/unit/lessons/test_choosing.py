"""Choosing: what the eight strategies cost on paper is what they take when every message is sent."""

from dataclasses import replace

import pytest

from lessons.choosing.rehearsal import rehearse
from lessons.choosing.strategies import STRATEGIES, Case, memory

SMALL = Case("ResNet-50", "V100", "EDR", batch=32, ranks=4)
BESIDE_THE_PIPELINE = [name for name in STRATEGIES if name != "1F1B"]


@pytest.mark.parametrize("strategy", BESIDE_THE_PIPELINE)
def test_a_step_takes_as_long_as_its_formula_says(strategy):
    assert rehearse(SMALL, strategy) == pytest.approx(STRATEGIES[strategy](SMALL), rel=0.005)


def test_a_pipeline_takes_no_longer_than_its_formula_says_where_links_are_fast():
    fast = replace(SMALL, bandwidth=100.0)
    assert 0.9 < rehearse(fast, "1F1B") / STRATEGIES["1F1B"](fast) < 1.001


def test_a_pipeline_whose_links_are_slower_than_its_stages_takes_longer_than_its_formula():
    slow = replace(SMALL, bandwidth=0.1)
    assert rehearse(slow, "1F1B") > 1.1 * STRATEGIES["1F1B"](slow)


@pytest.mark.parametrize("strategy", ["all-reduce", "server", "ZeRO-3"])
def test_twice_the_bandwidth_and_twice_the_speed_take_half_the_time(strategy):
    twice = replace(SMALL, latency=0.5, bandwidth=2.0, speed=2.0)
    assert STRATEGIES[strategy](twice) == pytest.approx(STRATEGIES[strategy](SMALL) / 2)


def test_what_divides_the_states_of_the_model_by_the_ranks_needs_less_memory():
    case = Case("GPT-2 XL", "V100", "EDR", batch=1)
    whole = memory(case, "all-reduce")
    assert whole == memory(case, "one machine") > memory(case, "server")
    assert max(memory(case, name) for name in ("1F1B", "tensor", "ZeRO-3")) < whole / 2
