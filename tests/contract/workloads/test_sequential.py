"""Chains: gradients against autograd, and cutting that changes nothing."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest

import kernels
from tests.contract.workloads.test_layers import in_torch
from workloads import models
from workloads.layers import Dense
from workloads.sequential import Sequential, balance

SETTINGS = {
    "mlp": {"hidden": "12,9"},
    "tanh": {"hidden": "12,9", "activation": "tanh"},
    "linear": {"hidden": ""},
    "residual": {"model": "residual", "depth": 6, "width": 8},
    "residual tanh": {"model": "residual", "depth": 6, "width": 8, "activation": "tanh"},
    "cnn": {"model": "cnn", "channels": 2},
    "cnn_bn": {"model": "cnn_bn", "channels": 2},
}
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_model = pytest.mark.parametrize("name", SETTINGS)


def chain(name, dtype=np.float64):
    return models.build(models.ModelKnobs(**SETTINGS[name]), (1, 8, 8), 5, dtype)


def samples(model, count=7, seed=3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, *model.inputs)).astype(model.dtype)
    return x, rng.integers(0, 5, count)


def cuts(model):
    return range(1, len(model.layers) + 1)


@each_model
def test_the_gradient_of_a_whole_model_is_the_one_of_autograd(name):
    torch = pytest.importorskip("torch")
    model = chain(name)
    x, target = samples(model)
    w = model.start(1)
    loss, g = model.gradient(w, x, target)

    vector = torch.tensor(w, requires_grad=True)
    y, at = torch.tensor(x), 0
    for layer in model.layers:
        sizes = [int(np.prod(shape)) for shape in layer.shapes]
        parts = [p.reshape(s) for p, s in zip(vector[at : at + sum(sizes)].split(sizes), layer.shapes, strict=True)]
        y, at = in_torch(layer, parts, y), at + sum(sizes)
    expected = torch.nn.functional.cross_entropy(y, torch.tensor(target))
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(g, vector.grad.numpy(), rtol=1e-10, atol=1e-13)


def test_a_chain_fits_numbers_as_well_as_classes():
    model = Sequential([Dense((2,), 3, "tanh"), Dense((3,), 2, "none")], kernels.squared_error, np.float64)
    rng = np.random.default_rng(0)
    w, x, t = model.start(0), rng.standard_normal((4, 2)), rng.standard_normal((4, 2))
    _, g = model.gradient(w, x, t)
    for i in range(len(w)):
        step = np.zeros_like(w)
        step[i] = 1e-6
        slope = (model.gradient(w + step, x, t)[0] - model.gradient(w - step, x, t)[0]) / 2e-6
        assert slope == pytest.approx(g[i], abs=1e-8)
    evaluation = model.evaluate(w, x, t)
    assert evaluation.loss == pytest.approx(model.gradient(w, x, t)[0])
    assert np.isnan(evaluation.accuracy)


@each_model
@both_types
def test_stages_one_after_the_other_are_the_whole_bit_for_bit(name, dtype):
    model = chain(name, dtype)
    x, target = samples(model)
    loss, g = model.gradient(model.start(4), x, target)
    for count in cuts(model):
        stages = model.split(count)
        w = [stage.start(4) for stage in stages]
        y, saved = x, []
        for stage, own in zip(stages, w, strict=True):
            y, kept = stage.forward(own, y)
            saved.append(kept)
        cut_loss, dy = stages[-1].loss(y, target)
        parts = []
        for stage, own, kept in reversed(list(zip(stages, w, saved, strict=True))):
            dy, part = stage.backward(own, kept, dy)
            parts.insert(0, part)
        assert cut_loss == loss
        assert dy is None
        np.testing.assert_array_equal(np.concatenate(parts), g)


@each_model
def test_every_cut_starts_from_the_same_numbers_and_knows_its_place(name):
    model = chain(name)
    whole = model.start(9)
    for count in cuts(model):
        for stage in model.split(count):
            np.testing.assert_array_equal(stage.start(9), whole[stage.offset : stage.offset + stage.parameters])
            assert stage.dtype == model.dtype
    np.testing.assert_array_equal(np.concatenate([s.start(9) for s in model.split(len(model.layers))]), whole)


def test_a_stage_can_be_cut_again():
    model = chain("residual")
    inner = model.split(2)[1]
    again = [piece for half in model.split(2) for piece in half.split(2)]
    np.testing.assert_array_equal(np.concatenate([stage.start(2) for stage in again]), model.start(2))
    assert again[2].offset == inner.offset


def test_a_layer_s_numbers_depend_on_its_place_and_the_seed_alone():
    short, long = chain("mlp"), models.build(models.ModelKnobs(hidden="12,9,7"), (1, 8, 8), 5, np.float64)
    shared = 64 * 12 + 12 + 12 * 9 + 9
    np.testing.assert_array_equal(short.start(5)[:shared], long.start(5)[:shared])
    assert not np.array_equal(short.start(5), short.start(6))
    equal = chain("residual")  # blocks of the same shape start differently
    blocks = [stage.start(0) for stage in equal.split(len(equal.layers))][1:-1]
    assert not any(np.array_equal(a, b) for a, b in combinations(blocks, 2))


def test_the_first_parameters_are_a_new_array_every_time():
    model = chain("mlp")
    model.start(0)[:] = 7
    assert not (model.start(0) == 7).any()


@each_model
def test_both_halves_are_the_backward_pass(name):
    model = chain(name)
    x, _ = samples(model)
    for stage in model.split(min(2, len(model.layers))):
        w = stage.start(1)
        y, saved = stage.forward(w, x)
        dy = np.random.default_rng(0).standard_normal(y.shape)
        dx, g = stage.backward(w, saved, dy)
        half, pending = stage.backward_input(w, saved, dy)
        np.testing.assert_array_equal(stage.backward_weights(pending), g)
        if dx is None:
            assert half is None
        else:
            np.testing.assert_array_equal(half, dx)
        x = y


@each_model
def test_a_backward_pass_may_write_over_a_gradient_or_add_to_it_with_the_bits_of_a_sum(name):
    model = chain(name)
    x, _ = samples(model)
    w = model.start(1)
    y, saved = model.forward(w, x)
    dy = np.random.default_rng(0).standard_normal(y.shape)
    own = model.backward(w, saved, dy)[1]
    g = np.full_like(own, 3)
    assert model.backward(w, saved, dy, g)[1] is g and np.array_equal(g, own)
    before = np.random.default_rng(1).standard_normal(g.shape).astype(g.dtype)
    g[:] = before
    assert model.backward(w, saved, dy, g, True)[1] is g and np.array_equal(g, before + own)


def test_backward_takes_products_from_the_weights_it_is_given_and_all_else_from_its_forward():
    model = chain("mlp")
    x, target = samples(model)
    w = model.start(1)
    y, saved = model.forward(w, x)
    _, dy = model.loss(y, target)
    other = np.random.default_rng(8).standard_normal(len(w))
    _, second, last = model.split(3)
    _, g = model.backward(other, saved, dy)

    # by hand: a's are of the forward pass, transposed matrices of the other weights
    (x1, a1), (_, a2), _ = saved
    w2 = other[second.offset : second.offset + 12 * 9].reshape(12, 9)
    w3 = other[last.offset : last.offset + 9 * 5].reshape(9, 5)
    d2 = (dy @ w3.T) * (a2 > 0)
    d1 = (d2 @ w2.T) * (a1 > 0)
    expected = [x1.T @ d1, d1.sum(0), a1.T @ d2, d2.sum(0), a2.T @ dy, dy.sum(0)]
    np.testing.assert_allclose(g, np.concatenate([part.ravel() for part in expected]), rtol=1e-12, atol=1e-14)


def test_weights_changed_in_place_are_seen():
    model = chain("mlp")
    x, target = samples(model)
    w = model.start(1)
    before, _ = model.gradient(w, x, target)
    w *= 0.5
    assert model.gradient(w, x, target)[0] == model.gradient(w.copy(), x, target)[0] != before


@pytest.mark.parametrize("stages", [0, -1, 4, 99])
def test_more_stages_than_layers_are_refused_with_what_fits(stages):
    with pytest.raises(ValueError, match=rf"^{stages} stages .*3 layers; use 1 to 3\.$"):
        chain("mlp").split(stages)


def test_a_chain_is_cut_where_the_caller_says():
    model = chain("residual")  # 8 layers
    stages = model.split((1, 5, 2))
    assert [stage.depth for stage in stages] == [1, 5, 2]
    assert [stage.first for stage in stages] == [0, 1, 6]
    np.testing.assert_array_equal(np.concatenate([stage.start(3) for stage in stages]), model.start(3))
    assert chain("cnn").boundaries([2, 1, 1]) == (4 * 2 * 2, 64)


@pytest.mark.parametrize("cuts", [(1, 1), (2, 2), [3, 3, 2]])
def test_cuts_that_leave_layers_over_or_want_too_many_are_refused(cuts):
    text = ",".join(map(str, cuts))
    with pytest.raises(ValueError, match=rf"^cuts {text} add up to {sum(cuts)}.* 3 layers"):
        chain("mlp").split(cuts)


@pytest.mark.parametrize("cuts", [(3, 0), (0, 3), (1, -1, 3), ()])
def test_cuts_with_an_empty_stage_are_refused(cuts):
    with pytest.raises(ValueError, match=r"empty.*at least 1 of the 3 layers\.$"):
        chain("mlp").split(cuts)


def test_layers_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(4,\).*next.*\(5,\)"):
        Sequential([Dense((3,), 4), Dense((5,), 2)], kernels.squared_error)


def test_boundaries_count_what_crosses_them():
    assert chain("mlp").boundaries(3) == (12, 9)
    assert chain("mlp").boundaries(1) == ()
    assert chain("cnn").boundaries(4) == (2 * 4 * 4, 4 * 2 * 2, 64)


def test_equal_blocks_are_shared_out_equally():
    for blocks, parts in ((16, 4), (10, 4), (7, 5)):
        sizes = [some.stop - some.start for some in balance([3.5] * blocks, parts)]
        assert sum(sizes) == blocks
        assert max(sizes) - min(sizes) <= 1


def test_the_largest_part_is_as_small_as_can_be():
    rng = np.random.default_rng(0)
    for _ in range(50):
        work = rng.integers(1, 20, rng.integers(1, 9)).tolist()
        for parts in range(1, len(work) + 1):
            found = [sum(work[some]) for some in balance(work, parts)]
            every = [
                [sum(work[a:b]) for a, b in zip((0, *inner), (*inner, len(work)), strict=True)]
                for inner in combinations(range(1, len(work)), parts - 1)
            ]
            least = min(max(sums) for sums in every)
            assert max(found) == least
            assert sum(f * f for f in found) == min(sum(s * s for s in sums) for sums in every if max(sums) == least)


def test_evaluation_is_the_same_in_one_go_and_in_pieces(monkeypatch):
    model = chain("mlp")
    x, target = samples(model, 50)
    w = model.start(0)
    whole = model.evaluate(w, x, target)
    monkeypatch.setattr("workloads.sequential.AT_ONCE", 7)
    pieces = model.evaluate(w, x, target)
    assert pieces.accuracy == whole.accuracy == np.mean(model.forward(w, x)[0].argmax(1) == target)
    assert pieces.loss == pytest.approx(whole.loss, rel=1e-12)


def test_evaluation_costs_nothing_on_the_clock():
    class Meter:
        def charge(self, *_):
            raise AssertionError("evaluation was charged")

    model = chain("mlp")
    with kernels.meter_kernels(Meter()):
        model.evaluate(model.start(0), *samples(model))


def test_the_price_of_a_gradient_is_three_products_per_layer_but_the_first():
    charged = []

    class Meter:
        def charge(self, kernel, flops, nbytes):
            charged.append((kernel, flops))

    model = chain("linear")
    with kernels.meter_kernels(Meter()):
        model.gradient(model.start(0), *samples(model, 10))
    products = sum(flops for kernel, flops in charged if kernel.startswith("dense"))
    assert products == pytest.approx(2 * (2 * 10 * 64 * 5), rel=0.02)  # forward and weights; nobody needs dx
    assert [kernel for kernel, _ in charged] == ["dense_forward", "softmax_cross_entropy", "dense_backward_weights"]


@pytest.mark.parametrize("name", ["mlp", "tanh", "linear", "residual", "residual tanh"])
@pytest.mark.parametrize("count", [1, 7])
@both_types
def test_dense_layers_and_blocks_in_one_call_have_the_bits_and_the_prices_of_a_pass_layer_by_layer(name, count, dtype):
    charged = []

    class Meter:
        def charge(self, *row):
            charged.append(row)

    model = chain(name, dtype)
    x, target = samples(model, count)
    w = model.start(2)
    with kernels.meter_kernels(Meter()):
        loss, g = model.gradient(w, x, target)
        by_layer = charged.copy()
        in_one_call, there = model.gradient(w, x, target)
    assert in_one_call == loss and charged == 2 * by_layer
    np.testing.assert_array_equal(there, g, strict=True)
    y, saved = model.forward(w, x)
    cut_loss, dy = model.loss(y, target)
    assert cut_loss == loss
    np.testing.assert_array_equal(model.backward(w, saved, dy)[1], there)


@each_model
def test_a_chain_runs_on_torch_tensors_as_it_does_on_numpy_arrays(name, monkeypatch):
    torch = pytest.importorskip("torch")
    model = chain(name, np.float32)
    x, target = samples(model)
    w = model.start(0)
    loss, g = model.gradient(w, x, target)

    def on_tensors(kernel, *args):  # stands for the gpu implementation: same memory, cpu arithmetic
        assert not any(isinstance(a, np.ndarray) for a in args)
        assert all(a.is_contiguous() for a in args if isinstance(a, torch.Tensor))
        return kernel.module.cpu(*(a.numpy() if isinstance(a, torch.Tensor) else a for a in args))

    monkeypatch.setattr(kernels.Kernel, "__call__", on_tensors)
    found, there = model.gradient(*map(torch.from_numpy, (w, x, target)))
    assert found == loss
    assert isinstance(there, torch.Tensor)
    np.testing.assert_array_equal(there.numpy(), g)


def test_initial_parameters_are_drawn_one_layer_at_a_time():
    model = Sequential([Dense((300,), 300, "relu") for _ in range(12)], kernels.softmax_cross_entropy)
    model.start(0)
    tracemalloc.start()
    w = model.start(0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    layers = [np.concatenate([part.ravel() for part in layer.start(np.random.default_rng([0, i]))])
              for i, layer in enumerate(model.layers)]  # fmt: skip
    assert peak < 1.5 * w.nbytes
    assert np.array_equal(w, np.concatenate(layers).astype(np.float32))
