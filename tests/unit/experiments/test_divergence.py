"""Why a run diverges: by the algorithm's formula, by what was changed, and never by what was not."""

import pytest

from experiments.experiment import Experiment
from experiments.run import run
from experiments.runs.divergence import cause


def test_a_spring_that_overshoots_is_what_is_blamed_and_not_the_rate():
    done = run(Experiment.of({"algorithm": "easgd", "pull": 2, "steps": 60, "evaluations": 1}))
    assert done.status == "diverged" and "learning" not in done.error and done.error.count("diverged") == 1
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
    assert "the learning rate was changed from 0.5 to 50" in found.sentence and found.undo == {"learning_rate": 0.5}


def test_a_rate_at_its_default_or_below_is_never_blamed():
    for values in ({}, {"learning_rate": 0.01, "batch": 1}, {"update": "momentum", "momentum": 0.99}):
        assert "learning_rate" not in cause(Experiment.of(values)).undo
    found = cause(Experiment.of({"update": "momentum", "momentum": 0.99}))
    assert "update from sgd to momentum" in found.sentence and "undo what you changed last" in found.sentence


def test_a_run_at_its_defaults_has_nothing_to_undo():
    assert cause(Experiment()).undo == {} and cause(Experiment(seed=3)).undo == {}
