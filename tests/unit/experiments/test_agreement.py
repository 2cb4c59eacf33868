"""Agreement of runs: one training to the bit, up to rounding, or up to where they differ."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from experiments.execution.run import run
from experiments.runs.agreement import agreement, verdict
from experiments.specification.experiment import Experiment
from tests.quotes import quote


@cache
def ran(**values):
    return run(Experiment.of({"workers": 1, "batch": 64, "steps": 12, "evaluations": 1, **values}))


def shifted(one, shares):
    """The run with losses that differ from its own by these shares of the first, a share a row."""
    loss = one.losses["loss"] + np.asarray(shares) * one.losses["loss"][0]
    w = one.parameters.copy()
    w[3] = np.nextafter(w[3], 9, dtype=w.dtype)
    return replace(one, losses={**one.losses, "loss": loss}, parameters=w)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_four_workers_with_a_quarter_of_the_batch_train_as_one_does_to_rounding(precision):
    one, four = ran(precision=precision), ran(workers=4, batch=16, precision=precision)
    assert one.summary["weights"] != four.summary["weights"]
    found = agreement(one, four)
    assert found.verdict == "rounding" and found.same and found.samples == 12 * 64
    assert 0 < found.models < 100 * np.finfo(precision).eps
    assert re.search(quote(f"{found.models:.0e} … rounding"), verdict(found))


def test_accumulated_gradients_are_compared_with_those_of_the_whole_batch():
    whole = ran(algorithm="sgd", learning_rate=0.5)
    parts = ran(algorithm="accumulation", batch=16, accumulate=4, steps=48, learning_rate=0.5)
    assert agreement(whole, parts).same and agreement(parts, whole).same


def test_the_same_model_on_another_network_is_the_same_bit_for_bit():
    found = agreement(ran(workers=4), ran(workers=4, network="1GbE"))
    assert found.same and "bit for bit" in verdict(found)


def test_another_rate_and_another_batch_part_where_they_first_make_a_difference():
    faster = agreement(ran(learning_rate=0.5), ran(learning_rate=0.4))
    assert not faster.same and faster.update == 2 and "before update 2, different" in verdict(faster)
    other = agreement(ran(), ran(seed=1))
    assert not other.same and other.update == 1 and "from the first update on" in verdict(other)
    smaller = agreement(ran(), ran(batch=32, steps=24))
    assert not smaller.same and smaller.update is None, "their updates have different samples"


def test_a_late_leap_names_the_update_and_a_slow_growth_is_not_called_another_training():
    one = ran()
    late = agreement(one, shifted(one, [0, 0, 1e-7, 0, 0, 2e-7, 0, 0.02, 0, 0, 0, 0]))
    assert late.verdict == "parted" and late.update == 8 and late.samples == 7 * 64
    grown = agreement(one, shifted(one, 1e-7 * 4.0 ** np.arange(12)))
    assert grown.verdict == "grown" and not grown.same and "--precision float64" in verdict(grown)


def test_a_small_difference_that_comes_at_once_is_not_called_rounding():
    found = agreement(ran(learning_rate=0.1), ran(learning_rate=0.1001))
    assert found.apart < 3e-4 and not found.same, "half the digits of every loss are equal"


def test_equal_losses_do_not_hide_another_model_at_the_end():
    one = ran()
    tried = {**one.evaluations, "loss": one.evaluations["loss"] * [1, 1.1]}
    found = agreement(one, replace(one, parameters=one.parameters + 1, evaluations=tried))
    assert found.ended and not found.same and "a different model at the end" in verdict(found)


def test_of_a_run_that_goes_on_longer_only_the_common_part_is_judged():
    found = agreement(ran(), ran(workers=4, batch=16, steps=20))
    assert found.verdict == "longer" and not found.same and "for 768 samples" in verdict(found)


def test_a_loss_that_diverges_in_one_run_alone_parts_them():
    one = ran()
    found = agreement(one, shifted(one, [0] * 9 + [np.nan] * 3))
    assert found.verdict == "parted" and found.update == 10


def test_other_data_or_another_model_is_no_question():
    assert agreement(ran(), ran(workload="quadratic")) is None
    assert agreement(ran(), ran(hidden="64")) is None
