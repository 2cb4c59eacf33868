"""What does not fit into memory is refused before it runs."""

import pytest

from experiments.execution import room
from experiments.execution.run import run, workload_of
from experiments.specification.experiment import Experiment

LARGE = {"hidden": "60000,60000", "workers": 2, "steps": 1}  # 14 GB of parameters


def test_a_model_that_does_not_fit_is_refused_with_what_it_needs_and_what_there_is(monkeypatch):
    monkeypatch.setattr(room, "available", lambda: 5e9)
    with pytest.raises(ValueError, match=r"at least 8\d.* GB .*but only 5 GB are free"):
        run(Experiment.of({"algorithm": "sync_sgd", **LARGE}))


def test_each_worker_with_a_model_of_its_own_needs_more():
    few, many = (Experiment.of({"algorithm": "sync_sgd", "workers": n}) for n in (2, 8))
    workload = workload_of(few)
    assert room.bytes_needed(many, workload) - room.bytes_needed(few, workload) == 6 * 4 * workload.parameters


def test_a_pipeline_has_one_model_however_many_workers_share_it():
    few, many = (Experiment.of({"algorithm": "gpipe", "workers": n}) for n in (2, 8))
    assert room.bytes_needed(few, workload_of(few)) == room.bytes_needed(many, workload_of(few))
