"""Algorithms and compressions on real processes: the bits of the simulated cluster, and what becomes of lost ranks."""

import os
import signal

import numpy as np
import pytest

import algorithms
from algorithms.algorithm import Algorithm
from cluster.real import processes
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from kernels.meter import METER
from tests.contract.algorithms.test_backup import RATE, served
from tests.contract.compression.test_every_compression import VARIANTS, experiment, results, stream
from tests.contract.compression.test_every_compression import spelled as spelled_codec
from tests.contract.compression.test_pushes import small
from tests.contract.test_every_algorithm import course, deterministic, spelled, workers_of
from tests.training import Springs, train, wait_until_told

NAMES = algorithms.names()
REAL = [(name, {}) for name in NAMES] + [("easgd", {"synchronous": True})]


@pytest.mark.slow
@pytest.mark.parametrize("variant", REAL, ids=spelled)
def test_real_processes_give_the_same_numbers(variant):
    workers = 2 if deterministic(variant) else 1  # alone with its server even an asynchronous worker is predictable
    workers = max(workers, workers_of(variant[0])) if workers_of(variant[0]) > Algorithm.example_workers else workers
    real = course(variant, workers=workers, run=processes.run)
    simulated = course(variant, workers=workers)
    assert all(np.array_equal(a, b) for a, b in zip(real.outcome.results, simulated.outcome.results, strict=True))


def everything(comm):
    return stream(VARIANTS, 3, comm)


def test_real_processes_decode_the_same_numbers():
    played, _ = results(everything, 2)  # first, so that the processes find the kernels compiled
    real, _ = results(everything, 2, processes)
    for number, variant in enumerate(VARIANTS):
        mine = slice(3 * number, 3 * number + 3)
        for one, other in zip(real, played, strict=True):
            assert np.array_equal(one[mine], other[mine]), spelled_codec(variant)


def test_a_run_on_real_processes_ends_with_the_same_weights():
    settings = {"steps": 5, "workers": 2, "evaluations": 1}
    played, real = (
        run(experiment(("top_k", {}), cluster=cluster, **settings)) for cluster in ("simulated", "processes")
    )
    assert real.status == "finished" and np.array_equal(real.parameters, played.parameters)
    assert real.summary["bytes"] == played.summary["bytes"]


def test_real_processes_push_the_same_codes():
    one = {"workers": 1, "compression": "qsgd", "steps": 10}
    assert np.array_equal(run(small(**one, cluster="processes")).parameters, run(small(**one)).parameters)


def test_real_processes_put_the_shards_of_zero_3_together_as_well():
    experiment = Experiment.of({"algorithm": "zero3", "workers": 2, "steps": 5, "evaluations": 2})
    real, simulated = run(experiment.change(cluster="processes")), run(experiment)
    assert np.array_equal(real.parameters, simulated.parameters)
    assert real.evaluations["loss"].tolist() == simulated.evaluations["loss"].tolist()


class Mortal(Springs):
    """Its process kills itself in its sixth gradient, when all that it has recorded has left."""

    def gradient(self, w, batch):
        if len(self.seen.get(0.0, ())) == 5:
            wait_until_told(METER.get())
            os.kill(os.getpid(), signal.SIGKILL)
        return super().gradient(w, batch)


def mortal(rank):
    return Mortal([0.0] * 3) if rank == 2 else Springs([0.0] * 3)


@pytest.mark.slow
@pytest.mark.parametrize("backups", [0, 1])
def test_a_killed_process_is_survived_if_there_is_a_backup_and_named_if_there_is_none(backups):
    run = train("backup", mortal, 3, RATE | {"backups": backups}, steps=300, fails=True, run=processes.run)
    said = str(run.outcome.error) if backups == 0 else run.outcome.notes[0]
    assert said.startswith("rank 2 was lost at ") and "(step 5)" in said and "SIGKILL" in said
    assert (run.outcome.error is None) == (backups == 1)
    assert len(run.outcome.event_logs[2].losses) == 5
    assert len(served(run)) == (300 if backups else 5)
