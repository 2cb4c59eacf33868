"""Runs on real processes have the same record, and a lost process loses nothing of it."""

import multiprocessing
import re

import numpy as np
import pytest

from cluster.real import processes
from cluster.waiting.pieces import WORK
from experiments.execution.run import run
from experiments.runs import store
from experiments.specification.experiment import Experiment


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
    for figure in ("bytes", "samples", "updates"):
        assert real.summary[figure] == simulated.summary[figure] > 0
    assert store.load(store.save(real, tmp_path)).summary == real.summary


@pytest.mark.parametrize("algorithm", ["sync_sgd", "overlap"])
def test_processes_synchronise_batch_norms_to_the_same_bits_as_simulated_ranks(algorithm):
    """Also beside sums that are under way meanwhile."""
    normed = small(algorithm, workers=3, steps=3, model="cnn_bn", channels=2, sync_batch_norm=True, collective="ring")
    simulated = run(normed)  # first, so that the processes find the kernels compiled
    real = run(normed.change(cluster="processes"))
    assert real.status == "finished", real.error
    assert real.parameters.tobytes() == simulated.parameters.tobytes()
    assert real.summary["bytes"] == simulated.summary["bytes"]
    assert real.parameters.tobytes() != run(normed.change(sync_batch_norm=False)).parameters.tobytes()


def test_real_processes_wait_for_the_same_straggler_as_simulated_ranks():
    slowed = small("sync_sgd", workers=3, slow="2:100")
    for one in (run(slowed), run(slowed.change(cluster="processes"))):
        assert one.causes.totals[:, WORK].argmax() == 2
        assert one.causes.totals[2, WORK] > 0.5 * one.causes.totals.sum()


def test_real_processes_count_the_flops_of_their_kernels():
    pushed, alone = small("asgd", steps=4), small("gpipe", steps=4)
    for e in (pushed, alone):
        assert run(e.change(cluster="processes")).flops == run(e).flops


def test_real_processes_hold_what_simulated_ranks_hold():
    experiment = small("overlap", update="adam", steps=5, evaluations=1)
    assert np.array_equal(run(experiment).peak_memory(), run(experiment.change(cluster="processes")).peak_memory())


def test_a_pipeline_trains_on_text_as_one_rank_does_and_real_processes_as_simulated_ones():
    model = {"workload": "text", "context": 8, "width": 8, "heads": 2, "depth": 2}
    pipeline = small("gpipe", **model, chunks=4, steps=6, batch=8, learning_rate=0.2)
    alone = run(small("sgd", **model, workers=1, steps=6, batch=8, learning_rate=0.2))
    simulated, real = run(pipeline), run(pipeline.change(cluster="processes"))
    assert real.status == simulated.status == "finished", real.error
    np.testing.assert_allclose(simulated.parameters, alone.parameters, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(real.parameters, simulated.parameters)
    assert simulated.losses["loss"][-1] < simulated.losses["loss"][0]


@pytest.fixture
def victim(monkeypatch):
    """victim(rank): in the runs to come this rank is killed when its second loss has been heard."""
    ranks, on_processes = [], processes.run

    def watched(*program, on_progress, **options):
        def look(event_logs, seconds):
            if all(event_logs[rank].step > 0 and len(event_logs[rank].losses) > 1 for rank in ranks):
                for child in multiprocessing.active_children():
                    if child.name in [f"rank {rank}" for rank in ranks]:
                        child.kill()

        return on_processes(*program, on_progress=look, **options)

    monkeypatch.setattr(processes, "run", watched)
    return ranks.append


def test_a_killed_process_ends_the_run_as_failed_with_its_record_and_leaves_none(victim):
    victim(1)
    done = run(small("sync_sgd", cluster="processes", steps=1_000_000))
    assert done.status == "failed" and done.trace.seconds() > 0
    step = int(re.match(r"rank 1 was lost at \S+ s \(step (\d+)\); .*killed by SIGKILL", done.error)[1])
    for rank in (0, 1):  # every loss is there, of the rank that was lost as far as it could be heard
        steps = done.losses["step"][done.losses["rank"] == rank]
        assert np.array_equal(steps, np.arange(len(steps))) and len(steps) >= step > 0
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("algorithm", ["easgd", "downpour"])
def test_a_killed_replica_is_survived_and_the_run_says_so(algorithm, tmp_path, victim):
    victim(2)
    for seconds in (1.0, 10.0, 100.0):  # on a slow machine one has to train for longer to be heard of
        done = run(small(algorithm, cluster="processes", steps=None, seconds=seconds))
        assert done.status == "finished", done.error
        if notes := [note for note in done.notes if "was lost" in note]:
            break
    (note,) = notes
    assert note.startswith("rank 2 was lost at ") and "killed by SIGKILL" in note
    heard = [done.losses["seconds"][done.losses["rank"] == rank].max() for rank in (1, 2)]
    assert heard[0] > heard[1] > 0
    assert store.load(store.save(done, tmp_path)).notes == done.notes
    assert not multiprocessing.active_children()


def test_a_real_run_can_be_cancelled():
    done = run(small("easgd", cluster="processes", steps=1_000_000), stop=lambda: True)
    assert done.status == "cancelled" and not multiprocessing.active_children()
