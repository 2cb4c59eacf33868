"""Runs with `cuda_graph`, on a stand-in for GPUs: the bits, the prices and the times are those without it."""

from __future__ import annotations

import re
from functools import partial

import pytest

from cluster import simulated
from cluster.real.event_log_stream import MergedEventLogs, StreamedEventLog
from experiments.execution.notes import notes_on
from experiments.execution.run import train
from experiments.specification.experiment import Experiment
from kernels import to_numpy
from tests.quotes import quote
from tests.recorded_launches import gpu, quick_gpu  # noqa: F401 - fixtures

SMALL = {"workers": 2, "steps": 5, "evaluations": 1, "cluster": "gpus"}


def done(place: str = "cpu:0", **settings) -> tuple:
    """Return an experiment on GPUs, and the outcome of its ranks on the stand-in."""
    e = Experiment.of({**SMALL, **settings})
    outcome = simulated.run(partial(train, e), e.ranks, collective="ring", place=place)
    assert outcome.error is None, outcome.error
    return e, outcome


def facts(outcome) -> tuple:
    """Return what a run computes, and what it says of it."""
    results = [to_numpy(w).tobytes() for w in outcome.results if w is not None]
    return results, [(log.losses, log.spans, log.flops, log.memory) for log in outcome.event_logs]


@pytest.mark.parametrize(
    "settings",
    [
        {"algorithm": "sync_sgd", "update": "momentum"},
        {"algorithm": "sync_sgd", "compression": "top_k", "hidden": ""},
        {"algorithm": "adam", "workload": "text", "workers": 1, "recompute_activations": True},
        {"algorithm": "easgd", "workload": "spirals"},
        {"algorithm": "asgd", "model": "cnn_bn", "channels": 2},
        {"algorithm": "local_sgd", "model": "residual", "precision": "float64"},
    ],
    ids=lambda settings: settings["algorithm"],
)
def test_a_run_with_graphs_has_the_bits_the_times_and_the_memory_of_a_run_without(quick_gpu, settings):  # noqa: F811
    _, plain = done(**settings)
    e, replayed = done(**settings, cuda_graph=True)
    assert facts(replayed) == facts(plain)
    trained = [log for log in replayed.event_logs if log.losses]
    assert [log.replays for log in trained] == [len(log.losses) - 2 for log in trained]
    assert not any(log.replays for log in plain.event_logs)
    assert not [note for note in notes_on(e, replayed.event_logs) if "cuda_graph" in note]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"workload": "text", "experts": 2}, "no effect on all gradients, because the host reads numbers"),
        ({"workload": "quadratic"}, "because what quadratic launches depends on the batch"),
        ({"precision": "bf16"}, "because a replay would reuse … 16-bit layers"),
        ({"model": "cnn_bn", "channels": 2, "sync_batch_norm": True}, "because batch norms exchange statistics"),
        ({"algorithm": "gpipe"}, "had no effect: this method computes gradients of parts"),
        ({"steps": 2}, "had no effect … fewer than three"),
        ({"place": "cpu"}, "because the ranks computed on the CPU"),
    ],
    ids=["experts", "quadratic", "bf16", "sync_batch_norm", "gpipe", "steps", "cpu"],
)
def test_a_run_that_cannot_replay_is_the_run_without_and_notes_why(quick_gpu, settings, words):  # noqa: F811
    settings = {"algorithm": "sync_sgd", "steps": 3, **settings}
    e, launched = done(**settings, cuda_graph=True)
    assert facts(launched) == facts(done(**settings)[1])
    (note,) = [note for note in notes_on(e, launched.event_logs) if "cuda_graph" in note]
    assert re.search(quote(words), note) and not any(log.replays for log in launched.event_logs)


def test_a_rank_without_a_gpu_refuses_the_setting():
    with pytest.raises(ValueError, match=quote("cuda_graph has no effect … with cluster gpus")):
        Experiment.from_query("algorithm=sync_sgd&cuda_graph=true")


def test_the_parent_of_a_real_rank_hears_how_often_it_replayed_and_why_it_did_not():
    log, merged = StreamedEventLog(0), MergedEventLogs(1)
    log.replays = 7
    log.remarks.append("the reason")
    merged.add(0, log.take())
    merged.add(0, log.take())
    assert merged.event_logs[0].replays == 7 and merged.event_logs[0].remarks == ["the reason"]
