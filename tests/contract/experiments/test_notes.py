"""Notes: where a method is another one, or cannot do what it is for, a sentence says so."""

from __future__ import annotations

import re

import numpy as np
import pytest

import algorithms
from algorithms import rates
from algorithms.parts import topology
from experiments.execution import notes
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.quotes import quote

SMALL = {"model": "residual", "depth": 6, "width": 8}


def experiment(name, **values):
    """A short run with a common learning rate."""
    rate = {"learning_rate": 0.05} if "learning_rate" in algorithms.find(name).Settings.model_fields else {}
    short = {"steps": 12, "batch": 32, "evaluations": 1, "precision": "float64"}
    return Experiment.of({"algorithm": name} | rate | short | values)


def trained(name, **values):
    """(Experiment, weights) of this method, None if it refuses to run like this, or has no such model."""
    try:
        e = experiment(name, **values)
        return e, run(e).parameters
    except ValueError:
        return None


def said(e, others):
    """Whether a note names one of the others, or a claim that holds with more than one worker and these settings."""
    if any(re.search(rf"\b{other}\b", note) for note in e.notes for other in others):
        return True
    return any(
        claim.workers > 1
        and claim.to != e.algorithm
        and all(
            e.settings[name] == value or claim.to_settings.get(name) == value for name, value in claim.settings.items()
        )
        for claim in e.method.equivalences
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_methods_that_end_with_the_same_weights_say_so_but_for_the_one_that_others_name(workers):
    runs = {name: found for name in algorithms.names() if (found := trained(name, workers=workers, **SMALL))}
    assert len(runs) > 65
    left = list(runs)
    while left:
        first, *left = left
        same = [first, *(other for other in left if np.allclose(runs[first][1], runs[other][1], rtol=1e-8, atol=1e-10))]
        left = [other for other in left if other not in same]
        silent = [name for name in same if not said(runs[name][0], [other for other in same if other != name])]
        assert len(silent) <= 1, f"{same} are equal, and none of {silent} says so"


SAME = [  # of each first one's notes: another method, and how it ends with the same weights
    ("natural_gradient", {"workload": "sparse", "features": 100, "rows": 600}, "model_averaging", {}),
    ("natural_gradient", {"workload": "text"}, "model_averaging", {}),
    ("natural_gradient", {"workload": "quadratic", "noise": 1}, "model_averaging", {}),
    ("project_adam", {"workload": "quadratic", "noise": 1}, "asgd", {}),
    ("ssp", {"workload": "digits", "hidden": "8"}, "asgd", {"learning_rate": 0.05 / 4}),
    ("softsync", {"hidden": "8", "splits": 4, "modulate": False}, "asgd", {"splits": None, "modulate": None}),
    ("polyak", {"hidden": "8", "after": 11}, "sgd", {"after": None}),
    ("batch_growth", {"hidden": "8", "momentum": 0.5}, "sync_sgd", {"update": "momentum", "momentum": 0.5}),
    ("local_sgd", {"hidden": "8", "update": "momentum"}, "model_averaging", {"update": "momentum"}),
    ("gossipgrad", {"hidden": "8", "workers": 2}, "sync_sgd", {}),
    ("push_sum", {"hidden": "8", "workers": 2}, "sync_sgd", {}),
    ("hybrid", {"hidden": "8", "layout": "data"}, "sync_sgd", {"layout": None}),
]


@pytest.mark.parametrize("name, values, other, change", SAME, ids=lambda x: x if isinstance(x, str) else "")
def test_a_note_that_names_another_method_is_true(name, values, other, change):
    e, w = trained(name, **values)
    assert any(re.search(rf"\b{other}\b", note) for note in e.notes)
    _, theirs = trained(other, **{key: value for key, value in (values | change).items() if value is not None})
    np.testing.assert_allclose(w, theirs, rtol=1e-8, atol=1e-10)


NOT_SAME = [
    ("natural_gradient", {}),
    ("ssp", {"slow": "1:3"}),
    ("ssp", {"bound": 0}),
    ("polyak", {"after": 5}),
    ("local_sgd", {"switch": 1}),
    ("project_adam", {"finish": 0.5}),
    ("softsync", {"splits": 1}),
    ("gossipgrad", {"workers": 4}),
    ("hybrid", {"groups": 2, "workers": 4}),
    ("backup", {"backups": 1, "workers": 4}),
    ("batch_growth", {"epochs": 100}),
    ("dpsgd", {"topology": "torus", "workers": 9}),
    ("feedback_alignment", {"model": "cnn_bn"}),
]


@pytest.mark.parametrize("name, values", NOT_SAME)
def test_where_a_method_is_itself_there_is_no_note(name, values):
    assert experiment(name, **values).notes == ()


@pytest.mark.parametrize("name", ["dpsgd", "adpsgd", "nearest_neighbour"])
def test_a_topology_that_is_another_one_is_called_by_its_name(name):
    for workers in range(3, 12):
        degrees = sorted(map(len, topology.torus(workers)))
        (note,) = experiment(name, topology="torus", workers=workers).notes or [""]
        assert ("topology is a ring" in note) == (degrees == [2] * workers and workers > 3)
    assert "is a ring" in experiment(name, topology="torus", workers=7).notes[0]
    assert "is the complete graph" in experiment(name, topology="exponential", workers=5).notes[0]


@pytest.mark.parametrize("name", ["diloco", "local_sgd", "noloco"])
def test_workers_that_meet_once_in_a_period_but_agree_on_the_end_in_every_step_are_told_so(name):
    timed = {"steps": None, "seconds": 0.01}
    assert any("agree in every step" in note for note in experiment(name, workers=4, **timed).notes)
    for other in ({"workers": 4}, {"workers": 1, **timed}, {"workers": 4, "period": 1, **timed}):
        assert not any("agree in every step" in note for note in experiment(name, **other).notes)


def test_workers_that_meet_in_every_step_or_visit_a_centre_are_not_told_when_they_agree():
    for name in ("sync_sgd", "easgd", "async_diloco", "sparta"):
        assert not any("agree" in note for note in experiment(name, workers=4, steps=None, seconds=0.01).notes)


def test_weights_of_push_sum_that_stay_1_are_explained_until_a_worker_is_lost():
    assert "weights p stay 1" in experiment("push_sum", workers=4).notes[0]
    assert experiment("push_sum", workers=4, crash="3:0.01").notes == ()


def test_random_feedback_through_convolutions_is_noted_and_a_smaller_step_that_the_note_names_learns():
    values = {"model": "cnn", "precision": "float32", "steps": 200}
    e = experiment("feedback_alignment", **values | {"learning_rate": 0.02})
    own, slow = e.notes
    assert "use a rate of 0.02" in own and "Give it more steps" in slow
    assert run(e).summary["accuracy"] > 0.5
    diverged = run(e.change(learning_rate=0.2))
    assert re.search(quote("2.30 of guessing … smaller learning rate"), diverged.notes[0])


def test_a_correction_that_a_batch_would_falsify_is_refused():
    with pytest.raises(ValueError, match=r"batch.*another model.* cnn"):
        run(experiment("async_svrg", model="cnn_bn", channels=2))


def test_a_run_that_ends_no_better_than_guessing_says_so_with_the_figures_and_what_to_try():
    stood_still = run(experiment("sgd", hidden="8").change(learning_rate=1e-6))
    assert re.search(r"loss .*2\.\d+.* 2\.30 of guessing.*more steps", stood_still.notes[0])
    assert run(experiment("sgd", hidden="8").change(steps=100, learning_rate=0.2)).notes == ()
    too_long = run(experiment("sgd", hidden="8").change(steps=100, learning_rate=5.0))
    assert too_long.status == "finished"
    assert re.search(quote("of guessing … smaller learning rate"), too_long.notes[0])


def test_a_run_of_a_step_is_advised_more_steps_and_not_a_smaller_rate():
    (note,) = run(experiment("sgd").change(steps=1)).notes
    assert re.search(quote("of guessing … only 1 step; try more steps"), note)


def test_a_run_too_short_to_learn_is_advised_a_larger_step_only_below_the_rate_that_was_searched_for():
    e = experiment("feedback_alignment", model="cnn", steps=2, precision="float32")
    searched = rates.find_rate("feedback_alignment", "digits", "cnn").rate
    told = [run(e.change(learning_rate=rate)).notes[0] for rate in (searched / 100, searched)]
    assert ["ten times larger" in note for note in told] == [True, False]
    assert all("more steps" in note for note in told)


def test_without_classes_a_run_is_measured_by_where_it_started():
    grown = run(experiment("sgd", workload="quadratic", noise=1).change(learning_rate=2.1))
    assert re.search(quote("started with … smaller learning rate"), grown.notes[0])
    assert run(experiment("sgd", workload="quadratic", noise=1).change(learning_rate=0.5)).notes == ()


def test_a_run_has_the_notes_that_its_experiment_had():
    done = run(experiment("push_sum", workers=4, hidden="8"))
    assert set(done.experiment.notes) <= set(done.notes)


CARRIED_NOTHING = "had no effect"


@pytest.mark.parametrize("cluster", ["simulated", "threads"])
@pytest.mark.parametrize("knob", [{"network": "1GbE"}, {"latency": 0.001}, {"bandwidth": 1e8}, {"per_node": 2}])
def test_a_network_that_carried_no_byte_is_said_to_have_carried_none(cluster, knob):
    shared = run(experiment("hogwild", cluster=cluster, workers=2, **knob))
    (told,) = [note for note in shared.notes if CARRIED_NOTHING in note]
    assert re.search(r"\d+ messages .*no payload", told) and shared.summary["bytes"] == 0
    alone = run(experiment("sgd", cluster=cluster, **knob))
    assert [note for note in alone.notes if CARRIED_NOTHING in note] == [notes._SILENT]


@pytest.mark.parametrize(
    "name, values",
    [("hogwild", {"workers": 2}), ("sgd", {}), ("sync_sgd", {"network": "1GbE"}), ("asgd", {"latency": 0.001})],
)
def test_a_network_that_nobody_chose_or_that_carried_something_is_not_noted(name, values):
    assert not [note for note in run(experiment(name, **values)).notes if CARRIED_NOTHING in note]


@pytest.mark.parametrize("cluster", ["simulated", "threads"])
def test_an_all_reduce_that_was_chosen_and_never_done_is_said_to_have_changed_nothing(cluster):
    few = {"cluster": cluster, "workers": 2, "hidden": "8", "steps": 4, "collective": "tree"}
    for name in ("easgd", "zero1"):
        assert notes._NO_ALL_REDUCE in run(experiment(name, **few)).notes
        assert notes._NO_ALL_REDUCE not in run(experiment(name, **few | {"collective": "fast"})).notes
    for name in ("sync_sgd", "overlap"):
        assert notes._NO_ALL_REDUCE not in run(experiment(name, **few)).notes
