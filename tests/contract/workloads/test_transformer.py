"""A transformer's layers by hand and by autograd, and what a model of them promises."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from workloads import transformer
from workloads.sequential import Sequential
from workloads.transformer import AttentionBlock, Embedding, Head, MlpBlock

TOKENS, TIME, WIDTH, HEADS = 7, 5, 6, 2
LAYERS = {
    "embedding": Embedding(TOKENS, TIME, WIDTH),
    "attention": AttentionBlock(TIME, WIDTH, HEADS),
    "attention, one head": AttentionBlock(TIME, WIDTH, 1),
    "mlp": MlpBlock(TIME, WIDTH),
    "head": Head(TIME, WIDTH, TOKENS),
}
each_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
after_the_first = pytest.mark.parametrize("layer", list(LAYERS.values())[1:], ids=list(LAYERS)[1:])
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def in_torch(layer, parts, x):
    """What the layer is meant to be."""
    import torch
    from torch.nn import functional as f

    if isinstance(layer, Embedding):
        return f.embedding(x, parts[0]) + parts[1]
    gain, bias, *products = parts
    h = f.layer_norm(x, (layer.width,), gain, bias, transformer.EPS)
    products = [lambda x, w=w, b=b: x @ w + b for w, b in zip(products[::2], products[1::2], strict=True)]
    if isinstance(layer, Head):
        return products[0](h)
    if isinstance(layer, MlpBlock):
        return x + products[1](f.gelu(products[0](h), approximate="tanh"))
    q, k, v = (product(h).unflatten(2, (layer.heads, -1)).transpose(1, 2) for product in products[:3])
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    masked = scores.masked_fill(~torch.ones(layer.time, layer.time, dtype=bool).tril(), -torch.inf)
    return x + products[3]((masked.softmax(3) @ v).transpose(1, 2).flatten(2))


def passes(layer, seed=0, samples=4):
    """parts, x, y, saved, dy; with biases that are not zero."""
    rng = np.random.default_rng(seed)
    parts = [part + 0.1 * rng.standard_normal(part.shape) for part in layer.start(rng)]
    x = rng.standard_normal((samples, *layer.inputs))
    if isinstance(layer, Embedding):
        x = rng.integers(0, layer.tokens, x.shape)
    y, saved = layer.forward(parts, x)
    return parts, x, y, saved, rng.standard_normal(y.shape)


def model(dtype=np.float64, depth=4):
    layers = transformer.layers(TOKENS, TIME, WIDTH, HEADS, depth)
    return Sequential(layers, kernels.softmax_cross_entropy, dtype)


def samples(count=6, seed=3):
    rng = np.random.default_rng(seed)
    return rng.integers(0, TOKENS, (count, TIME)), rng.integers(0, TOKENS, (count, TIME))


@each_layer
def test_a_backward_pass_by_hand_is_the_one_of_autograd(layer):
    torch = pytest.importorskip("torch")
    parts, x, y, saved, dy = passes(layer)
    learned = [torch.tensor(part, requires_grad=True) for part in parts]
    entered = torch.tensor(x, requires_grad=x.dtype == np.float64)
    expected = in_torch(layer, learned, entered)
    wanted = [entered, *learned] if entered.requires_grad else learned
    theirs = [g.numpy() for g in torch.autograd.grad(expected, wanted, torch.tensor(dy))]

    dx, pending = layer.backward_input(parts, saved, dy)
    g = [np.full_like(part, np.nan) for part in parts]
    layer.backward_weights(g, pending)
    ours = [dx, *g] if entered.requires_grad else g
    for mine, other in zip([y, *ours], [expected.detach().numpy(), *theirs], strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-10, atol=1e-12)


@each_layer
def test_shapes_are_as_declared(layer):
    parts, x, y, saved, dy = passes(layer)
    assert tuple(part.shape for part in parts) == layer.shapes
    assert y.shape[1:] == layer.outputs
    dx, pending = layer.backward_input(parts, saved, dy)
    assert dx is None if isinstance(layer, Embedding) else dx.shape == x.shape
    assert pending[-1].dtype == y.dtype


@after_the_first
def test_nobody_computes_the_gradient_of_inputs_that_nobody_needs(layer):
    parts, _, _, saved, dy = passes(layer)
    dx, pending = layer.backward_input(parts, saved, dy, needed=False)
    _, expected = layer.backward_input(parts, saved, dy)
    assert dx is None
    for a, b in zip(pending, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@each_layer
def test_a_pass_leaves_its_arguments_as_they_were(layer):
    parts, x, _, saved, dy = passes(layer)
    before = [array.copy() for array in (*parts, x, *saved, dy)]
    _, pending = layer.backward_input(parts, saved, dy)
    kept = [array.copy() for array in pending]
    layer.backward_weights([np.empty_like(part) for part in parts], pending)
    for was, now in zip((*before, *kept), (*parts, x, *saved, dy, *pending), strict=True):
        np.testing.assert_array_equal(was, now)


def test_backward_takes_products_and_gains_from_the_weights_it_is_given_and_all_else_from_its_forward():
    torch = pytest.importorskip("torch")
    layer = LAYERS["mlp"]
    parts, _, _, saved, dy = passes(layer)
    gain, _, w1, _, w2, _ = other = passes(layer, seed=5)[0]
    dx, pending = layer.backward_input(other, saved, dy)
    g = [np.empty_like(part) for part in parts]
    layer.backward_weights(g, pending)

    u, r, h, z, a = saved  # of the forward pass
    slope = torch.func.vmap(torch.func.grad(lambda z: torch.nn.functional.gelu(z, approximate="tanh")))
    dz = (dy @ w2.T) * slope(torch.from_numpy(z.ravel())).numpy().reshape(z.shape)
    dh = dz @ w1.T
    du = gain * dh
    through = du - du.mean(2, keepdims=True) - u * (u * du).mean(2, keepdims=True)
    np.testing.assert_allclose(dx, dy + r.reshape(*dy.shape[:2], 1) * through, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(g[2], np.einsum("nti,ntj->ij", h, dz), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(g[4], np.einsum("nti,ntj->ij", a, dy), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(g[0], (u * dh).sum((0, 1)), rtol=1e-10, atol=1e-12)


def test_the_loss_is_the_mean_over_every_position():
    torch = pytest.importorskip("torch")
    chain, (_, target) = model(), samples()
    y = np.random.default_rng(0).standard_normal((*target.shape, TOKENS))
    logits = torch.tensor(y, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.tensor(target).flatten())
    expected.backward()
    loss, dy = chain.loss(y, target)
    assert loss == pytest.approx(expected.item(), rel=1e-14)
    np.testing.assert_allclose(dy, logits.grad.numpy(), rtol=1e-10, atol=1e-15)


def test_the_gradient_of_a_whole_model_is_the_one_of_autograd():
    torch = pytest.importorskip("torch")
    chain, (x, target) = model(), samples()
    w = chain.start(1)
    loss, g = chain.gradient(w, x, target)

    vector = torch.tensor(w, requires_grad=True)
    y, parts = torch.tensor(x), iter([vector[place].reshape(shape) for place, shape in chain.tensors])
    for layer in chain.layers:
        y = in_torch(layer, [next(parts) for _ in layer.shapes], y)
    expected = torch.nn.functional.cross_entropy(y.flatten(0, 1), torch.tensor(target).flatten())
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-12)
    np.testing.assert_allclose(g, vector.grad.numpy(), rtol=1e-10, atol=1e-13)


@both_types
def test_stages_one_after_the_other_are_the_whole_bit_for_bit(dtype):
    chain, (x, target) = model(dtype), samples()
    loss, g = chain.gradient(chain.start(4), x, target)
    for count in range(1, chain.depth + 1):
        stages = chain.split(count)
        w = [stage.start(4) for stage in stages]
        y, saved = x, []
        for stage, own in zip(stages, w, strict=True):
            y, kept = stage.forward(own, y)
            assert y.shape[1:] == stage.outputs
            saved.append(kept)
        cut_loss, dy = stages[-1].loss(y, target)
        parts = []
        for stage, own, kept in reversed(list(zip(stages, w, saved, strict=True))):
            dy, pending = stage.backward_input(own, kept, dy)
            parts.insert(0, stage.backward_weights(pending))
        assert cut_loss == loss and dy is None
        np.testing.assert_array_equal(np.concatenate(parts), g)
        np.testing.assert_array_equal(np.concatenate(w), chain.start(4))


def test_blocks_of_attention_and_mlp_take_turns_between_the_embedding_and_the_head():
    kinds = [type(layer) for layer in model(depth=3).layers]
    assert kinds == [Embedding, AttentionBlock, MlpBlock, AttentionBlock, Head]


def test_boundaries_are_positions_times_width():
    assert model().boundaries(6) == (TIME * WIDTH,) * 5


def test_a_token_changes_what_comes_after_it_and_no_bit_of_what_came_before():
    chain, (x, _) = model(), samples()
    w = chain.start(2)
    before, _ = chain.forward(w, x)
    for t in range(TIME):
        other = x.copy()
        other[:, t] = (other[:, t] + 1) % TOKENS
        after, _ = chain.forward(w, other)
        np.testing.assert_array_equal(after[:, :t], before[:, :t])
        assert (after[:, t:] != before[:, t:]).any((0, 2)).all()


def test_equal_tokens_in_other_places_are_told_apart():
    chain = model()
    y, _ = chain.forward(chain.start(0), np.full((1, TIME), 3))
    assert not np.allclose(y[0, 0], y[0, 1])


def test_evaluation_passes_so_many_positions_at_once_whatever_the_length_of_a_sample(monkeypatch):
    chain, at_once, whole = model(), [], Sequential.loss
    monkeypatch.setattr("workloads.sequential.AT_ONCE", 3 * TIME + 1)
    monkeypatch.setattr(Sequential, "loss", lambda self, y, target: at_once.append(len(y)) or whole(self, y, target))
    chain.evaluate(chain.start(0), *samples(8))
    assert at_once == [3, 3, 2]


def test_accuracy_counts_positions(monkeypatch):
    chain, (x, target) = model(), samples(50)
    w = chain.start(0)
    evaluation = chain.evaluate(w, x, target)
    y, _ = chain.forward(w, x)
    assert evaluation.accuracy == pytest.approx((y.argmax(2) == target).mean(), rel=1e-12)
    assert evaluation.loss == pytest.approx(chain.loss(y, target)[0], rel=1e-12)
    monkeypatch.setattr("workloads.sequential.AT_ONCE", 3 * TIME)
    assert chain.evaluate(w, x, target) == pytest.approx(evaluation, rel=1e-12)


def test_a_pair_of_blocks_costs_what_the_literature_says_and_small_change():
    t, h, n = 32, 128, 2
    charged = []

    class Meter:
        def charge(self, kernel, flops, nbytes):
            charged.append(flops)

    def price(function, *args):
        charged.clear()
        with kernels.meter_kernels(Meter()):
            return function(*args), sum(charged)

    totals = np.zeros(3)
    for layer in AttentionBlock(t, h, 1), MlpBlock(t, h):
        rng = np.random.default_rng(0)
        parts = layer.start(rng)
        x = rng.standard_normal((n, t, h))
        (y, saved), forward = price(layer.forward, parts, x)
        (_, pending), b = price(layer.backward_input, parts, saved, y)
        _, w = price(layer.backward_weights, [np.empty_like(part) for part in parts], pending)
        totals += forward, b, w
    expected = n * t * h * np.array([24 * h + 4 * t, 24 * h + 8 * t, 24 * h])
    assert (totals > expected).all()
    np.testing.assert_allclose(totals, expected, rtol=0.05)
    assert n * sum(layer.flops for layer in (AttentionBlock(t, h, 1), MlpBlock(t, h))) == expected[0]


def test_blocks_leave_the_size_of_what_passes_within_a_constant_however_many():
    for depth in (2, 32):
        layers = transformer.layers(TOKENS, TIME, 32, 4, depth)
        body = Sequential(layers[:-1], kernels.softmax_cross_entropy, np.float64)
        y, _ = body.forward(body.start(0), samples(20)[0])
        assert 0.3 < np.mean(y**2) < 5


@both_types
def test_a_transformer_runs_on_torch_tensors_as_it_does_on_numpy_arrays(dtype, monkeypatch):
    torch = pytest.importorskip("torch")
    chain, (x, target) = model(dtype), samples()
    w = chain.start(0)
    loss, g = chain.gradient(w, x, target)

    def on_tensors(kernel, *args):  # stands for the gpu implementation: same memory, cpu arithmetic
        assert not any(isinstance(a, np.ndarray) for a in args)
        assert all(a.is_contiguous() for a in args if isinstance(a, torch.Tensor))
        return kernel.module.cpu(*(a.numpy() if isinstance(a, torch.Tensor) else a for a in args))

    monkeypatch.setattr(kernels.Kernel, "__call__", on_tensors)
    found, there = chain.gradient(*map(torch.from_numpy, (w, x, target)))
    assert found == loss
    np.testing.assert_array_equal(there.numpy(), g)


@pytest.mark.parametrize("width, heads, fit", [(32, 5, "30 or 35"), (3, 4, "4 or 8"), (7, 2, "6 or 8")])
def test_heads_that_do_not_divide_the_width_are_refused_with_widths_that_fit(width, heads, fit):
    with pytest.raises(ValueError, match=rf"^{heads} heads .*width of {width}; use a width of {fit}"):
        transformer.layers(TOKENS, TIME, width, heads, 1)
