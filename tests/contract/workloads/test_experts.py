"""Mixtures of experts: a block is what a loop over its tokens computes, forward and backward."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels
import workloads
from tests.quotes import quote
from tests.training import train
from workloads import transformer
from workloads.experts import SHARED, MoeBlock, by_expert, places
from workloads.sequential import Sequential
from workloads.transformer import MlpBlock

TIME, WIDTH, EXPERTS, SAMPLES = 5, 6, 3, 2
TOKENS = 7  # kinds of tokens that the model of the text reads
FORMS = [(1, 8.0), (1, 0.8), (2, 8.0), (2, 0.8)]  # chosen and capacity: with room for all, and not
each_form = pytest.mark.parametrize(("chosen", "capacity"), FORMS)
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def passes(chosen, capacity, seed=0):
    """(layer, parts, x, dy), with biases that are not zero."""
    layer = MoeBlock(TIME, WIDTH, experts=EXPERTS, chosen=chosen, capacity=capacity, balance=0.3)
    rng = np.random.default_rng(seed)
    parts = [part + 0.1 * rng.standard_normal(part.shape) for part in layer.start(rng)]
    return layer, parts, *(rng.standard_normal((SAMPLES, TIME, WIDTH)) for _ in range(2))


def gelu(z):
    return z / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))


def by_token(layer, parts, x, capacity):
    """(y, balance loss, choices that were dropped) by the formulas, one token after the other."""
    gain, bias, router, *experts = parts
    y, tokens = x.reshape(-1, WIDTH).copy(), x.reshape(-1, WIDTH)
    room = math.ceil(capacity * layer.chosen * len(tokens) / EXPERTS)
    full, first, mean, dropped = [0] * EXPERTS, np.zeros(EXPERTS), np.zeros(EXPERTS), 0
    for t, token in enumerate(tokens):
        h = gain * (token - token.mean()) / np.sqrt(token.var() + transformer.EPS) + bias
        p = np.exp(h @ router) / np.exp(h @ router).sum()
        chosen = sorted(range(EXPERTS), key=lambda e: -p[e])[: layer.chosen]
        first[chosen[0]] += 1 / len(tokens)
        mean += p / len(tokens)
        for e in chosen:
            if full[e] == room:
                dropped += 1
                continue
            full[e] += 1
            w1, b1, w2, b2 = experts[4 * e : 4 * e + 4]
            weight = p[e] if layer.chosen == 1 else p[e] / p[chosen].sum()
            y[t] += weight * (gelu(h @ w1 + b1) @ w2 + b2)
    return y.reshape(x.shape), first, mean, dropped


@each_form
def test_a_block_is_a_loop_over_its_tokens(chosen, capacity):
    layer, parts, x, _ = passes(chosen, capacity)
    y, (routing, *_) = layer.forward(parts, x)
    expected, first, _, dropped = by_token(layer, parts, x, capacity)
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(routing.share, first, rtol=1e-14)
    assert (dropped > 0) == (capacity < 1)
    assert routing.wanted.sum() - routing.taken.sum() == dropped == (routing.place < 0).sum()


@each_form
def test_its_gradient_is_that_of_the_loop_and_of_the_balance_loss(chosen, capacity):
    layer, parts, x, dy = passes(chosen, capacity)
    _, first, _, _ = by_token(layer, parts, x, capacity)

    def objective(*arrays):
        *parts, x = arrays
        y, _, mean, _ = by_token(layer, parts, x, capacity)
        return (y * dy).sum() + layer.balance * EXPERTS * first @ mean  # shares are constants

    _, saved = layer.forward(parts, x)
    dx, pending = layer.backward_input(parts, saved, dy)
    gradients = [np.full_like(part, np.nan) for part in parts]
    layer.backward_weights(gradients, pending)
    rng = np.random.default_rng(1)
    for number, g in enumerate([*gradients, dx]):
        for _ in range(5):
            along = rng.standard_normal(g.shape)
            ends = []
            for step in (1e-6, -1e-6):
                arrays = [*parts, x]
                arrays[number] = arrays[number] + step * along
                ends.append(objective(*arrays))
            assert (g * along).sum() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-6, abs=1e-7), number


def test_backward_leaves_out_inputs_that_nobody_needs():
    layer, parts, x, dy = passes(1, 0.8)
    _, saved = layer.forward(parts, x)
    assert layer.backward_input(parts, saved, dy, needed=False)[0] is None


@both_types
def test_with_one_expert_a_model_is_the_dense_one_bit_for_bit(dtype):
    def model(block=None):
        layers = transformer.layers(TOKENS, TIME, WIDTH, 2, 4, block)
        return Sequential(layers, kernels.softmax_cross_entropy, dtype)

    dense, mixed = model(), model(lambda *shape: MoeBlock(*shape, experts=1, capacity=1.0, balance=0.5))
    others, routers = [], []  # the places of what both have
    for layer, tensors in zip(mixed.layers, mixed._places, strict=True):
        for number, (place, _) in enumerate(tensors):
            mine = isinstance(layer, MoeBlock) and number == SHARED - 1
            (routers if mine else others).append(np.arange(place.start, place.stop))
    same = np.concatenate(others)
    rng = np.random.default_rng(0)
    x, target = rng.integers(0, TOKENS, (2, SAMPLES, TIME))
    w = mixed.start(3)
    np.testing.assert_array_equal(w[same], dense.start(3))
    loss, g = mixed.gradient(w, x, target)
    expected_loss, expected = dense.gradient(w[same].copy(), x, target)
    assert loss == expected_loss
    np.testing.assert_array_equal(g[same], expected)
    assert not g[np.concatenate(routers)].any()
    assert mixed.evaluate(w, x, target) == dense.evaluate(w[same].copy(), x, target)


GOLDEN = np.array([[2, 0, 0], [1, 0, 0], [3, 0, 1], [0, 2, 0], [0, 0, 1], [0.5, 0.4, 0]])


@both_types
def test_six_tokens_choose_three_experts_as_by_hand(dtype):
    z = GOLDEN.astype(dtype)
    p, weight, chosen = np.empty_like(z), np.empty((6, 1), dtype), np.empty((6, 1), np.int64)
    kernels.route_forward(p, weight, chosen, z)
    place, wanted = places(chosen, 3, limit=2)
    assert chosen.ravel().tolist() == [0, 0, 0, 1, 2, 0] and wanted.tolist() == [4, 1, 1]
    assert (place.ravel() >= 0).tolist() == [True, True, False, True, True, False]
    gates = [0.786986, 0.576117, 0.843795, 0.786986, 0.576117, 0.398189]
    np.testing.assert_allclose(weight.ravel(), gates, atol=1e-6)
    near = 1e-6 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(p.mean(0), [0.487255923165, 0.286613802948, 0.226130273887], atol=near)
    assert 3 * (np.array([4, 1, 1]) / 6) @ p.mean(0) == pytest.approx(1.2308838847474974, rel=10 * near)


def test_equal_logits_choose_the_first_experts():
    z = np.zeros((1, 4))
    p, weight, chosen = np.empty_like(z), np.empty((1, 3)), np.empty((1, 3), np.int64)
    kernels.route_forward(p, weight, chosen, z)
    assert chosen.tolist() == [[0, 1, 2]] and weight.tolist() == [[1 / 3] * 3]


def test_rows_are_sorted_by_expert_and_then_by_token():
    chosen = np.array([[1, 0], [2, 1], [1, 2], [1, 0]])
    place, wanted = places(chosen, 3, limit=2)
    assert wanted.tolist() == [2, 4, 2]
    assert place.tolist() == [[2, 0], [4, 3], [-1, 5], [-1, 1]]


def test_dispatch_and_combine_conserve_the_rows_of_tokens():
    layer, parts, x, _ = passes(2, 8.0)
    rows, routing = layer.enter(parts, x)
    y, _ = layer.leave(np.zeros_like(x), rows, routing)  # experts that return what they get
    np.testing.assert_allclose(y, routing.h, rtol=1e-14)  # weights add up to 1
    assert sum(map(len, rows)) == 2 * SAMPLES * TIME
    layer, parts, x, _ = passes(1, 0.8)
    rows, routing = layer.enter(parts, x)
    y, _ = layer.leave(np.zeros_like(x), rows, routing)
    here = (routing.place >= 0).reshape(SAMPLES, TIME, 1)
    np.testing.assert_array_equal(y, np.where(here, routing.weight.reshape(SAMPLES, TIME, 1) * routing.h, 0))


def test_evaluation_drops_no_token():
    layer, parts, x, _ = passes(1, 0.4)
    roomy, *_ = passes(1, 8.0)
    np.testing.assert_array_equal(layer.evaluate(parts, x), roomy.forward(parts, x)[0])
    assert not np.array_equal(layer.forward(parts, x)[0], layer.evaluate(parts, x))


def test_experts_start_differently_and_the_first_as_the_mlp():
    experts = by_expert(MoeBlock(TIME, WIDTH, experts=3).start(np.random.default_rng(0))[SHARED:])
    dense = MlpBlock(TIME, WIDTH).start(np.random.default_rng(0))[2:]
    assert all(np.array_equal(a, b) for a, b in zip(experts[0], dense, strict=True))
    assert not np.array_equal(experts[0][0], experts[1][0])


# the text model with experts


def text(**settings):
    module = workloads.find("text")
    shape = {"context": 8, "width": 8, "heads": 2, "depth": 4}
    return module.build(module.Settings(**shape | settings), np.dtype(np.float64))


def test_every_mlp_block_of_the_text_model_is_a_mixture_if_it_has_experts():
    layers = text(experts=4, chosen=2).model.layers
    assert [type(layer).__name__ for layer in layers].count("MoeBlock") == 2
    assert not any(isinstance(layer, MoeBlock) for layer in text().model.layers)
    assert text(experts=4).experts() == 4


def test_more_choices_than_experts_are_refused():
    with pytest.raises(ValueError, match=quote("chooses 3 of 2 experts … at least 3 experts")):
        text(experts=2, chosen=3)


@pytest.mark.parametrize(("name", "workers"), [("zero3", 2), ("gpipe", 3), ("context", 2), ("pipedream", 2)])
def test_other_algorithms_train_experts_too(name, workers):
    workload = text(experts=3)
    run = train(name, workload, workers, {"learning_rate": 0.1}, batch=8, steps=4)
    assert workload.evaluate(run.shipped).loss < workload.evaluate(workload.start(0)).loss


def test_tensor_parallelism_refuses_experts_and_says_what_to_use():
    with pytest.raises(ValueError, match=quote("MoeBlock … text without experts")):
        text(experts=3).blocks(0, 2)
