"""Scaling: speed-up and efficiency of runs with more workers, and batches that are divided among them."""

from dataclasses import replace

import pytest

from experiments.runs.scaling import scaling
from experiments.specification.experiment import Experiment
from experiments.study.sweep import grid


def made(run, rate, **values):
    """The run as one of an experiment with these values, and so many samples per second."""
    e = Experiment.of({"algorithm": "sync_sgd", "steps": 12, **values})
    return [replace(run, experiment=e, summary={**run.summary, "samples_per_second": rate, "seconds": 6.0})]


def test_speed_up_and_efficiency_are_against_the_fewest_workers(small_run):
    together = [made(small_run, rate, workers=n) for n, rate in ((4, 300.0), (2, 200.0), (8, 400.0))]
    four, two, eight = scaling(together, ["workers"])
    assert (two.speed_up, two.efficiency) == (1, 1) and two.step_seconds == 0.5
    assert (four.speed_up, four.efficiency) == (1.5, 0.75) and (eight.speed_up, eight.efficiency) == (2, 0.5)


def test_runs_are_compared_among_equal_values_of_the_other_settings(small_run):
    values = [(1, "1GbE", 10.0), (1, "10GbE", 20.0), (2, "1GbE", 15.0), (2, "10GbE", 40.0)]
    together = [made(small_run, rate, workers=n, network=network) for n, network, rate in values]
    assert [one.speed_up for one in scaling(together, ["workers", "network"])] == [1, 1, 1.5, 2]


def test_with_a_target_loss_the_speed_up_is_of_the_time_and_needs_the_loss(small_run):
    (one,), (two,) = (made(small_run, 10.0, workers=n, target_loss=9.0) for n in (1, 2))
    losses = {name: column.repeat(20) for name, column in small_run.losses.items()}
    there = [replace(run, losses=losses) for run in (one, two)]
    there[1].summary["seconds"] = 2.0
    assert [found.speed_up for found in scaling([[run] for run in there], ["workers"])] == [1, 3]
    far = replace(there[1], experiment=there[1].experiment.change(target_loss=1e-6))
    assert scaling([[there[0]], [far]], ["workers"])[1].speed_up is None


def test_a_speed_up_may_be_of_any_rate(small_run):
    together = [made(small_run, 10.0, workers=n) for n in (1, 2)]
    found = scaling(together, ["workers"], lambda run: 3.0 if run.experiment.workers == 2 else 2.0)
    assert [one.speed_up for one in found] == [1, 1.5] and found[1].efficiency == 0.75


def test_without_workers_among_what_is_varied_there_is_no_speed_up(small_run):
    assert scaling([made(small_run, 10.0), made(small_run, 20.0)], ["network"]) is None


def test_a_global_batch_is_divided_among_the_workers_or_refused():
    experiments = grid(Experiment(), {"workers": [1, 2, 4]}, global_batch=64)
    assert [(e.workers, e.batch) for e in experiments] == [(1, 64), (2, 32), (4, 16)]
    with pytest.raises(ValueError, match=r"3 workers .*global batch of 64.* 63 or 66"):
        grid(Experiment(), {"workers": [1, 3]}, global_batch=64)
