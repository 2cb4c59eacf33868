"""What a run says about itself, beyond its columns."""

from dataclasses import replace

import numpy as np
import pytest

import algorithms
from algorithms.algorithm import unpredictable
from experiments.execution.run import run
from experiments.runs.figures import FIGURES
from experiments.runs.summary import summarise
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tracing import HELD

PARAMETERS, GRADIENTS, STATE, ACTIVATIONS, BUFFERS = range(len(HELD))


def holding(small_run, *rows):
    """The run with these rows (rank, kind, bytes) as its memory, one after the other."""
    rank, kind, nbytes = zip(*rows, strict=True)
    memory = {
        "rank": np.array(rank, "i4"),
        "step": np.zeros(len(rows), "i4"),
        "seconds": np.arange(len(rows)) / 10,
        "kind": np.array(kind, "i1"),
        "bytes": np.array(nbytes, "i8"),
    }
    return replace(small_run, memory=memory)


def test_the_fullest_moment_of_a_rank_is_not_that_of_each_kind(small_run):
    done = holding(
        small_run,
        *((2, PARAMETERS, 10), (0, PARAMETERS, 7), (2, ACTIVATIONS, 50), (2, ACTIVATIONS, 0)),
        *((2, GRADIENTS, 30), (2, PARAMETERS, 25), (2, GRADIENTS, 0)),
    )
    assert done.peak_memory().tolist() == [[7, 0, 0, 0, 0], [0] * 5, [10, 0, 0, 50, 0]]
    assert done.peaks().tolist() == [[7, 0, 0, 0, 0], [0] * 5, [25, 30, 0, 50, 0]]


@pytest.mark.parametrize(("update", "vectors"), [("sgd", 0), ("momentum", 1), ("adam", 2)])
def test_training_of_whole_models_holds_parameters_gradient_activations_and_what_the_rule_remembers(update, vectors):
    done = run(Experiment.of({"algorithm": "sync_sgd", "update": update, "batch": 16, "steps": 3, "evaluations": 1}))
    d = done.parameters.nbytes
    activations = 4 * 16 * (64 + 128 + 128 + 10)
    assert done.peak_memory().tolist() == [[d, d, vectors * d, activations, 0]] * 4
    assert done.summary["memory"] == (2 + vectors) * d + activations


def test_the_rules_of_one_worker_say_what_they_remember():
    def remembered(name):
        done = run(Experiment.of({"algorithm": name, "workers": 1, "steps": 1, "evaluations": 1}))
        return done.peak_memory()[0, STATE] / done.parameters.nbytes

    vectors = {"sgd": 0, "momentum": 1, "nesterov": 1, "adagrad": 1, "rmsprop": 1, "adam": 2}
    assert {name: remembered(name) for name in vectors} == vectors


def test_a_run_that_needs_more_memory_than_a_rank_has_is_refused():
    with pytest.raises(
        ValueError, match=quote("rank 0 … 100,000 … 251,216: 104,488 for parameters, 104,488 for gradients")
    ):
        run(Experiment.of({"algorithm": "sync_sgd", "rank_memory": 100_000}))


def test_a_server_that_gathers_gradients_needs_memory_for_all_of_them():
    settings = {"algorithm": "backup", "workers": 8, "rank_memory": 300_000, "steps": 1}
    with pytest.raises(ValueError, match=quote("1,567,320: 731,416 for gradients, 835,904 for buffers")):
        run(Experiment.of(settings))


@pytest.mark.parametrize("algorithm", ["tensor", "layer_wise", "ddg", "features_replay", "zero3"])
def test_so_is_one_that_needs_it_once_it_has_seen_a_loss(algorithm):
    with pytest.raises(ValueError, match=r"^rank \d .*70,000 bytes.* smaller model"):
        run(Experiment.of({"algorithm": algorithm, "rank_memory": 70_000, "update": "adam", "steps": 9}))


def test_every_figure_that_has_a_name_is_in_the_summary_of_a_run(small_run):
    assert FIGURES.keys() <= small_run.summary.keys()


def test_traffic_that_is_unpredictable_without_compression_gives_no_compression_ratio(monkeypatch):
    done = run(Experiment(algorithm="sync_sgd", compression="top_k", steps=2))
    assert done.summary["compression_ratio"] > 1
    method = replace(done.experiment.method, elements_sent=unpredictable)
    monkeypatch.setattr(algorithms, "find", lambda name: method)
    assert summarise(done, 0.0)["compression_ratio"] is None
