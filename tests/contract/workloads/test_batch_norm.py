"""Batch norm: what a batch is when it is cut, and what evaluation takes instead of it."""

from __future__ import annotations

import numpy as np
import pytest

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
    """Parameters as they may be after some training; statistics need not fit the weights."""
    rng = np.random.default_rng(seed)
    w, *rest = layer.start(rng)
    gain, bias, mean, spread = (rng.standard_normal(part.shape) for part in rest)
    return [w, gain, bias, mean, 0.1 + spread**2]


def gpipe(workload, chunks, stages=2, recompute="none", **options):
    settings = {"chunks": chunks, "learning_rate": RATE, "recompute": recompute}
    return train("gpipe", workload, stages, settings, **{"batch": BATCH, "steps": STEPS} | options)


def by_hand(workload, chunks):
    """Gradients through micro-batches normalised apart, by autograd; averages of whole mini-batches' statistics."""
    torch = pytest.importorskip("torch")
    layers, places = workload.model.layers, workload.model.tensors
    w, batches = torch.tensor(workload.start(0)), Batches(workload.samples, BATCH)
    for _ in range(STEPS):
        x, target = map(torch.tensor, workload.batch(next(batches)))
        w.requires_grad_()
        tensors, pieces, averages = iter(places), x.chunk(chunks), []
        for layer in layers:
            here = [next(tensors) for _ in layer.shapes]
            parts = [w[place].reshape(shape) for place, shape in here]
            if isinstance(layer, NormedConvolution):
                z = torch.cat([torch.conv2d(piece, parts[0], padding=1) for piece in pieces]).detach()
                averages += [
                    (here[3][0], z.mean((0, 2, 3))),
                    (here[4][0], ((z - parts[3].detach().reshape(-1, 1, 1)) ** 2).mean((0, 2, 3))),
                ]
            pieces = [in_torch(layer, parts, piece) for piece in pieces]
        (g,) = torch.autograd.grad(torch.nn.functional.cross_entropy(torch.cat(pieces), target), w)
        after = w.detach() - RATE * g
        for place, statistic in averages:
            after[place] = (1 - RATE) * w[place].detach() + RATE * statistic
        w = after
    return w.numpy()


def statistics(workload):
    """Where the running statistics lie in w."""
    where = np.zeros(workload.parameters, bool)
    for first in (0, 5):  # tensors of the two convolutions: w, gain, bias, mean, variance
        for place, _ in workload.tensors[first + 3 : first + 5]:
            where[place] = True
    return where


def test_evaluation_is_torch_s_with_the_same_statistics():
    torch = pytest.importorskip("torch")
    w, gain, bias, mean, variance = map(torch.tensor, trained())
    norm = torch.nn.BatchNorm2d(3, eps=EPS).double().eval()
    norm.load_state_dict({"weight": gain, "bias": bias, "running_mean": mean, "running_var": variance}, False)
    x = np.random.default_rng(1).standard_normal((5, *LAYER.inputs))
    with torch.no_grad():
        y = torch.nn.functional.max_pool2d(norm(torch.conv2d(torch.tensor(x), w, padding=1)).relu(), 2)
    np.testing.assert_allclose(LAYER.evaluate(trained(), x), y.numpy(), rtol=1e-12, atol=1e-13)


def test_in_training_samples_depend_on_their_batch_and_in_evaluation_they_do_not():
    x = np.random.default_rng(1).standard_normal((6, *LAYER.inputs))
    parts = trained()
    apart = LAYER.evaluate(parts, x[:2])
    np.testing.assert_allclose(apart, LAYER.evaluate(parts, x)[:2], rtol=1e-12, atol=1e-14)
    assert np.abs(LAYER.forward(parts, x[:2])[0] - LAYER.forward(parts, x)[0][:2]).max() > 0.01


def test_statistics_follow_the_forward_pass_whatever_weights_the_backward_pass_reads():
    parts, other = trained(), trained(seed=1)
    y, saved = LAYER.forward(parts, np.random.default_rng(1).standard_normal((6, *LAYER.inputs)))
    own, strange = [np.empty_like(part) for part in parts], [np.empty_like(part) for part in parts]
    for weights, gradients in ((parts, own), (other, strange)):
        LAYER.backward_weights(gradients, LAYER.backward_input(weights, saved, np.ones_like(y))[1])
    np.testing.assert_array_equal(own[3:], strange[3:])
    assert not np.array_equal(own[0], strange[0])


def test_a_model_is_evaluated_by_its_running_statistics():
    workload = digits(channels=2)
    w, x = workload.start(0), workload.held_out[0]
    before = workload.evaluate(w)
    w[workload.tensors[3][0]] += 0.5  # running means of the first convolution
    assert workload.evaluate(w).loss != before.loss
    np.testing.assert_array_equal(workload.model.forward(w, x)[0], workload.model.forward(workload.start(0), x)[0])


def test_a_variance_that_momentum_made_negative_counts_as_none():
    w, gain, bias, mean, _ = trained()
    y = LAYER.evaluate([w, gain, bias, mean, 0 * mean - 0.1], np.ones((1, *LAYER.inputs)))
    np.testing.assert_array_equal(y, LAYER.evaluate([w, gain, bias, mean, 0 * mean], np.ones((1, *LAYER.inputs))))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("chunks", [1, 4, 16])
def test_a_pipeline_normalises_each_micro_batch_apart_and_keeps_statistics_of_whole_mini_batches(stages, chunks):
    workload = digits(channels=2)
    (w,) = gpipe(workload, chunks, stages).models
    np.testing.assert_allclose(w, by_hand(workload, chunks), rtol=1e-9, atol=1e-11)


def test_micro_batches_do_not_sum_to_the_mini_batch():
    workload = digits(channels=2)
    whole, cut = (gpipe(workload, chunks).models[0] for chunks in (1, 4))
    assert np.abs(whole - cut).max() > 1e-3


def test_statistics_of_the_first_layer_do_not_depend_on_how_a_mini_batch_is_cut():
    workload = digits(channels=2)
    mean, variance = (place for place, _ in workload.tensors[3:5])
    one, four = (gpipe(workload, chunks, steps=1).models[0] for chunks in (1, 4))
    for place in (mean, variance):
        np.testing.assert_allclose(one[place], four[place], rtol=1e-13, atol=0)


@pytest.mark.parametrize("recompute", ["early", "late"])
def test_going_forward_again_counts_nothing_twice(recompute):
    workload = digits(channels=2)
    stored, again = (gpipe(workload, 4, 3, recompute=when).models[0] for when in ("none", recompute))
    np.testing.assert_array_equal(again, stored)
    assert (stored != workload.start(0))[statistics(workload)].all()


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
