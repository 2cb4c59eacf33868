"""Why a run diverges: by the algorithm's formula, by what was changed, and never by what was not."""

import re

import pytest

from experiments.execution.run import run
from experiments.runs.divergence import cause
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.tiers import slow_except


def test_a_spring_that_overshoots_is_what_is_blamed_and_not_the_rate():
    done = run(Experiment.of({"algorithm": "easgd", "pull": 2, "steps": 60, "evaluations": 1}))
    assert done.status == "diverged" and "learning" not in done.error and "diverged" not in done.error
    assert (
        "pull is 2, and each visit takes a replica to the other side of the centre, 3 times as far away "
        "(1 − 2 pull = −3); use at most 1" in done.error
    )
    assert cause(done.experiment).undo == {"pull": None}


@pytest.mark.parametrize(("synchronous", "pull"), [(False, 1.01), (True, 0.41)])
def test_the_formula_of_the_spring_holds_at_its_edge(synchronous, pull):
    common = {"algorithm": "easgd", "workers": 4, "synchronous": synchronous}
    assert list(Experiment.of({**common, "pull": pull}).method.unstable(Experiment.of({**common, "pull": pull})))
    for pull_inside in (pull - 0.02, pull - 0.01):  # the last is what the message says to use at most
        inside = Experiment.of({**common, "pull": pull_inside})
        assert not list(inside.method.unstable(inside))


def test_a_rate_above_its_default_is_named_with_what_it_was():
    found = cause(Experiment.of({"learning_rate": 50}))
    assert re.search(quote("learning rate … 50 … 0.5"), found.sentence) and found.undo == {"learning_rate": 0.5}


def test_a_rate_at_its_default_or_below_is_never_blamed():
    for values in ({}, {"learning_rate": 0.01, "batch": 1}, {"update": "momentum", "momentum": 0.99}):
        assert "learning_rate" not in cause(Experiment.of(values)).undo
    found = cause(Experiment.of({"update": "momentum", "momentum": 0.99}))
    assert re.search(quote("update … momentum … sgd … one by one"), found.sentence)


def test_a_run_at_its_defaults_has_nothing_to_undo():
    assert cause(Experiment()).undo == {} and cause(Experiment(seed=3)).undo == {}


def test_gradients_that_come_too_late_for_their_rate_are_blamed_on_the_delay():
    done = run(Experiment.of({"algorithm": "delayed", "delay": 64}))
    (note,) = [note for note in done.notes if "held-out loss ends" in note]
    assert re.search(quote("64 steps late … delay"), note) and "e+" not in note
    assert cause(done.experiment).undo == {"delay": 1}


@pytest.mark.parametrize("delay", slow_except((2, 16), (2, 4, 16)))
def test_at_the_rate_that_is_named_for_a_delay_it_learns_and_nothing_is_blamed(delay):
    late = Experiment.of({"algorithm": "delayed", "delay": delay, "evaluations": 1})
    rate = float(cause(late).sentence.rpartition("at most ")[2])
    done = run(late.change(learning_rate=rate))
    assert not list(late.method.unstable(done.experiment)) and done.summary["held_out_loss"] < 2


def test_signs_at_the_rate_of_gradients_are_blamed_and_a_hundredth_of_it_is_not():
    e = Experiment.of({"compression": "sign"})
    found = cause(e)
    assert re.search(quote("whole learning rate … 0.005"), found.sentence)
    assert found.undo == {"compression": "none"} and e.change(**found.undo).compression == "none"
    assert "whole learning rate" not in cause(e.change(learning_rate=0.005)).sentence
    assert "whole learning rate" not in cause(e.change(error_feedback=True)).sentence


def test_a_setting_that_has_its_default_is_never_said_to_differ_from_it():
    for compression in ("sign", "top_k", "power_sgd"):
        sentence = cause(Experiment.of({"compression": compression, "learning_rate": 0.005})).sentence
        assert re.search(quote(f"compression … {compression} … none"), sentence)


def test_neither_the_data_set_nor_the_budget_nor_a_loss_is_said_to_make_a_loss_rise():
    e = Experiment.of({"steps": 10, "crash": "1:5", "network": "1GbE", "workers": 2})
    assert cause(e).undo == {} and "changed" not in cause(e).sentence


def test_more_workers_of_an_asynchronous_method_are_blamed_for_the_age_of_gradients():
    found = cause(Experiment.of({"algorithm": "asgd", "workers": 32}))
    assert re.search(quote("32 workers … older"), found.sentence) and found.undo == {"workers": 4}
