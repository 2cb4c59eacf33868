"""Runs on real processes have the same record, and a lost process loses nothing of it."""

import multiprocessing
import re

import numpy as np
import pytest

from experiments import store
from experiments.experiment import Experiment
from experiments.run import run


def small(algorithm, **values):
    return Experiment.of({"algorithm": algorithm, "workers": 2, "steps": 10, "evaluations": 2, **values})


@pytest.mark.parametrize("algorithm", ["sync_sgd", "gpipe"])
def test_processes_give_the_same_weights_and_the_same_tables_as_the_simulated_cluster(algorithm, tmp_path):
    real, simulated = run(small(algorithm, cluster="processes")), run(small(algorithm))
    assert real.status == "finished", real.error
    assert np.array_equal(real.parameters, simulated.parameters)
    assert real.summary["weights"] == simulated.summary["weights"]
    for table in ("losses", "evaluations", "applied"):
        a, b = getattr(real, table), getattr(simulated, table)
        assert {n: c.dtype for n, c in a.items()} == {n: c.dtype for n, c in b.items()}
    assert np.array_equal(np.sort(real.losses["loss"]), np.sort(simulated.losses["loss"]))
    assert {n: c.dtype for n, c in real.trace.spans.items()} == {n: c.dtype for n, c in simulated.trace.spans.items()}
    assert real.summary["bytes"] == simulated.summary["bytes"]
    assert store.load(store.save(real, tmp_path)).summary == real.summary


def test_a_killed_process_ends_the_run_as_failed_with_its_record_and_leaves_none():
    def kill_one(progress):
        if len(progress.curve["loss"]):
            for child in multiprocessing.active_children():
                if child.name == "rank 1":
                    child.kill()

    done = run(small("sync_sgd", cluster="processes", steps=1_000_000), kill_one)
    assert done.status == "failed" and done.trace.seconds() > 0
    step = int(re.match(r"rank 1 was lost at \S+ s \(step (\d+)\); .*killed by SIGKILL", done.error)[1])
    for rank in (0, 1):  # every loss is there, of the rank that was lost as far as it could be heard
        steps = done.losses["step"][done.losses["rank"] == rank]
        assert np.array_equal(steps, np.arange(len(steps))) and len(steps) >= step > 0
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("algorithm", ["easgd", "downpour"])
def test_a_killed_replica_is_survived_and_the_run_says_so(algorithm, tmp_path):
    def kill_one(progress):
        if len(progress.curve["loss"]):
            for child in multiprocessing.active_children():
                if child.name == "rank 2":
                    child.kill()

    done = run(small(algorithm, cluster="processes", steps=None, seconds=2.0), kill_one)
    assert done.status == "finished", done.error
    (note,) = done.notes
    assert note.startswith("rank 2 was lost at ") and note.endswith("the others went on without it")
    steps = [done.losses["step"][done.losses["rank"] == rank].max() for rank in (1, 2)]
    assert steps[0] > steps[1] > 0
    assert store.load(store.save(done, tmp_path)).notes == done.notes
    assert not multiprocessing.active_children()


def test_a_real_run_can_be_cancelled():
    done = run(small("easgd", cluster="processes", steps=1_000_000), stop=lambda: True)
    assert done.status == "cancelled" and not multiprocessing.active_children()
