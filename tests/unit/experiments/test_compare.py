"""Comparing, sweeping, replaying."""

from dataclasses import replace

import pytest

from experiments.runs.compare import compare
from experiments.specification.experiment import Experiment
from experiments.study.sweep import grid, sweep

BASE = Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 6, "evaluations": 2})


def test_a_comparison_shows_the_settings_that_differ_and_no_others(small_run, stale_run):
    rows = compare([small_run, stale_run])
    assert rows[0]["algorithm"] == "easgd" and rows[1]["algorithm"] == "downpour"
    assert rows[0]["steps"] == 12 and rows[1]["n_push"] == 1 and rows[0]["n_push"] is None
    assert "workers" not in rows[0] and "seed" not in rows[0]
    assert list(rows[0]) == list(rows[1])
    assert next(iter(compare([small_run])[0])) == "status"
    assert compare([]) == []


def test_settings_of_a_compression_are_compared_too(small_run):
    runs = [
        replace(small_run, experiment=Experiment.of({"compression": "top_k", "density": density}))
        for density in (0.1, 0.2)
    ]
    assert [row["density"] for row in compare(runs)] == [0.1, 0.2]
    assert "error_feedback" not in compare(runs)[0]


def test_a_sweep_runs_every_combination_in_order():
    told = []
    runs = sweep(BASE, lambda number, count, progress: told.append((number, count)), workers=(1, 2), period=(1, 3))
    assert [(r.experiment.workers, r.experiment.settings["period"]) for r in runs] == [(1, 1), (1, 3), (2, 1), (2, 3)]
    assert all(run.status == "finished" for run in runs)
    assert all(count == 4 for _, count in told)


def test_a_sweep_runs_each_experiment_once_even_if_values_mean_the_same():
    axes = {"workers": (2, 2), "recompute_activations": (True, "full")}
    assert len(grid(Experiment(), axes)) == 1


def test_a_sweep_over_algorithms_keeps_what_they_share():
    runs = sweep(BASE, algorithm=("sgd", "easgd"), learning_rate=(0.1,))
    assert [run.experiment.algorithm for run in runs] == ["sgd", "easgd"]
    assert {run.experiment.settings["learning_rate"] for run in runs} == {0.1}


def test_a_sweep_with_an_impossible_combination_runs_nothing(monkeypatch):
    monkeypatch.setattr("experiments.study.sweep.run", lambda *_: pytest.fail("it ran"))
    with pytest.raises(ValueError, match="larger than the shard"):
        sweep(BASE, workers=(2, 4096))
    with pytest.raises(ValueError, match="no setting 'perod'"):
        sweep(BASE, perod=(1, 2))
    with pytest.raises(ValueError, match="at most 10,000"):
        grid(BASE, {"seed": range(12_000)})


def test_a_sweep_of_what_has_no_effect_in_any_of_its_runs_is_refused():
    with pytest.raises(ValueError, match="momentum has no effect: it applies only with update momentum or nesterov"):
        grid(Experiment(), {"momentum": ["0.9", "0.5"]})
    with pytest.raises(ValueError, match="momentum has no effect"):
        grid(Experiment(), {"workers": [1, 2], "momentum": ["0.5"]})
    assert len(grid(Experiment(), {"update": ["sgd", "momentum"], "momentum": [0.5, 0.9]})) == 3  # sgd has none


def test_a_cancelled_sweep_gives_what_it_has():
    assert len(sweep(BASE.change(steps=100_000), stop=lambda: True, seed=(1, 2, 3))) == 1
