"""Batch norm: what a batch is when it is cut, and the population that evaluation takes instead of it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import algorithms
import workloads
from tests.contract.workloads.test_layers import in_torch
from tests.training import train
from workloads.batch_norm import EPS, NormedConvolution
from workloads.batches import Batches

LAYER = NormedConvolution((2, 7, 6), 3)
RATE, BATCH, STEPS = 0.1, 16, 12


def digits(dtype=np.float64, **settings):
    module = workloads.find("digits")
    return module.build(module.Settings(model="cnn_bn", **settings), np.dtype(dtype))


def trained(layer=LAYER, seed=0):
    """Parameters as they may be after some training."""
    rng = np.random.default_rng(seed)
    w, *rest = layer.start(rng)
    return [w, *(rng.standard_normal(part.shape) for part in rest)]


def gpipe(workload, chunks, stages=2, recompute="none", **options):
    settings = {"chunks": chunks, "learning_rate": RATE, "recompute": recompute}
    return train("gpipe", workload, stages, settings, **{"batch": BATCH, "steps": STEPS} | options)


def by_hand(workload, chunks):
    """Gradients through micro-batches normalised apart, by autograd."""
    torch = pytest.importorskip("torch")
    layers, places = workload.model.layers, workload.model.tensors
    w, batches = torch.tensor(workload.start(0)), Batches(workload.samples, BATCH)
    for _ in range(STEPS):
        x, target = map(torch.tensor, workload.batch(next(batches)))
        w.requires_grad_()
        tensors, pieces = iter(places), x.chunk(chunks)
        for layer in layers:
            parts = [w[place].reshape(shape) for place, shape in (next(tensors) for _ in layer.shapes)]
            pieces = [in_torch(layer, parts, piece) for piece in pieces]
        (g,) = torch.autograd.grad(torch.nn.functional.cross_entropy(torch.cat(pieces), target), w)
        w = w.detach() - RATE * g
    return w.numpy()


def taught(name, workload):
    """The model that the algorithm ships after some steps, or None if it has a reason not to train it."""
    method, batch = algorithms.find(name), 32
    s = method.Settings(learning_rate=0.01)
    workers = method.defaults.get("workers") or next(
        n for n in (4, 2) if method.stages(n, s) <= workload.depth or not method.shares_samples
    )
    try:
        method.check(workers, batch, workload, s)
    except ValueError as reason:
        assert re.search("NormedConvolution|units|batch norm|not sequences|no experts", str(reason))
        return None
    steps = 2 if method.whole_batch else 10
    return train(name, workload, workers, {"learning_rate": 0.01}, batch=batch, steps=steps).shipped


def test_evaluation_is_torch_s_with_the_same_statistics():
    torch = pytest.importorskip("torch")
    w, gain, bias = map(torch.tensor, trained())
    rng = np.random.default_rng(1)
    x, mean, variance = rng.standard_normal((5, *LAYER.inputs)), rng.standard_normal(3), rng.random(3) + 0.1
    norm = torch.nn.BatchNorm2d(3, eps=EPS).double().eval()
    running = {"running_mean": torch.tensor(mean), "running_var": torch.tensor(variance)}
    norm.load_state_dict({"weight": gain, "bias": bias, **running}, False)
    with torch.no_grad():
        y = torch.nn.functional.max_pool2d(norm(torch.conv2d(torch.tensor(x), w, padding=1)).relu(), 2)
    np.testing.assert_allclose(LAYER.evaluate(trained(), x, (mean, variance)), y.numpy(), rtol=1e-12, atol=1e-13)


def test_in_training_samples_depend_on_their_batch_and_in_evaluation_they_do_not():
    x = np.random.default_rng(1).standard_normal((6, *LAYER.inputs))
    parts, statistics = trained(), (np.zeros(3), np.ones(3))
    apart = LAYER.evaluate(parts, x[:2], statistics)
    np.testing.assert_allclose(apart, LAYER.evaluate(parts, x, statistics)[:2], rtol=1e-12, atol=1e-14)
    assert np.abs(LAYER.forward(parts, x[:2])[0] - LAYER.forward(parts, x)[0][:2]).max() > 0.01


def test_a_batch_that_is_evaluated_by_its_own_statistics_is_evaluated_as_it_was_trained():
    x = np.random.default_rng(1).standard_normal((6, *LAYER.inputs))
    y, saved = LAYER.forward(trained(), x)
    np.testing.assert_allclose(LAYER.evaluate(trained(), x, LAYER.statistics(saved)), y, rtol=1e-9, atol=1e-12)


def test_statistics_are_the_means_of_those_that_replicas_see_whatever_their_number():
    workload = digits(channels=2)
    w, x = workload.start(0), workload.x[:1200]
    (mean, variance), *_ = workload.model.statistics(w, x)
    for replicas in (2, 5):
        seen = [workload.model.statistics(w, shard)[0] for shard in np.split(x, replicas)]
        means, variances = np.transpose(seen, (1, 0, 2))  # (replicas, channels)
        np.testing.assert_allclose(means.mean(0), mean, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(variances.mean(0) + means.var(0), variance, rtol=1e-11)


def test_a_model_is_evaluated_over_its_training_samples_and_not_over_held_out_ones():
    workload = digits(channels=2)
    w, (x, target) = workload.start(0), workload.held_out
    halves = [workload.model.evaluate(w, x[half::2], target[half::2], workload.x).loss for half in (0, 1)]
    assert workload.evaluate(w).loss == pytest.approx(np.mean(halves), rel=1e-12)
    assert workload.model.evaluate(w, x, target, workload.x[:50]).loss != workload.evaluate(w).loss


def test_a_large_training_set_is_stood_for_by_samples_from_all_of_it(monkeypatch):
    monkeypatch.setattr("workloads.sequential.POPULATION", 100)
    workload = digits(channels=2)
    w = workload.start(0)
    few = workload.model.statistics(w, workload.x)
    np.testing.assert_array_equal(few[0], workload.model.statistics(w, workload.x[::15])[0])


@pytest.mark.parametrize("name", algorithms.names())
def test_whatever_trains_it_is_evaluated_as_it_was_normalised(name):
    workload = digits(np.float32, channels=2)
    w = taught(name, workload)
    if w is None:
        return
    for mean, variance in filter(None, workload.model.statistics(w, workload.x)):
        assert np.isfinite(mean).all() and np.isfinite(variance).all() and (variance > 0).all()
    x, target = workload.held_out
    within, _ = workload.model.loss(workload.model.forward(w, x)[0], target)
    assert workload.evaluate(w).loss == pytest.approx(within, rel=0.05)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("chunks", [1, 4, 16])
def test_a_pipeline_normalises_each_micro_batch_apart(stages, chunks):
    workload = digits(channels=2)
    (w,) = gpipe(workload, chunks, stages).models
    np.testing.assert_allclose(w, by_hand(workload, chunks), rtol=1e-9, atol=1e-11)


def test_micro_batches_do_not_sum_to_the_mini_batch():
    workload = digits(channels=2)
    whole, cut = (gpipe(workload, chunks).models[0] for chunks in (1, 4))
    assert np.abs(whole - cut).max() > 1e-3


@pytest.mark.parametrize("recompute", ["early", "late"])
def test_going_forward_again_changes_nothing(recompute):
    workload = digits(channels=2)
    stored, again = (gpipe(workload, 4, 3, recompute=when).models[0] for when in ("none", recompute))
    np.testing.assert_array_equal(again, stored)


def test_workers_are_each_other_s_micro_batches():
    workload = digits(channels=2)
    (pipeline,) = gpipe(workload, 4).models
    workers = train("sync_sgd", workload, 4, {"learning_rate": RATE}, batch=BATCH // 4, steps=STEPS).models
    np.testing.assert_allclose(workers[0], pipeline, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name, settings", [("sync_sgd", {}), ("gpipe", {"chunks": 4})])
def test_it_learns_to_read_digits(name, settings):
    workload = digits(np.float32)
    run = train(name, workload, 4, settings, batch=8 if name == "sync_sgd" else 32, steps=150)
    assert workload.evaluate(run.shipped).accuracy > 0.92
