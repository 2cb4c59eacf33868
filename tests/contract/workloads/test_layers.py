"""Each layer, by hand and by autograd."""

from __future__ import annotations

import numpy as np
import pytest

from workloads.batch_norm import EPS, NormedConvolution
from workloads.layers import Convolution, Dense, Residual

LAYERS = {
    "dense": Dense((6,), 4, "none"),
    "dense relu": Dense((6,), 4, "relu"),
    "dense tanh": Dense((6,), 4, "tanh"),
    "dense on images": Dense((2, 4, 4), 5, "relu"),
    "residual relu": Residual(Dense((6,), 6, "relu")),
    "residual tanh": Residual(Dense((6,), 6, "tanh"), scale=0.3),
    "convolution": Convolution((2, 7, 6), 3),
    "normed convolution": NormedConvolution((2, 7, 6), 3),
}
each_layer = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def in_torch(layer, parts, x):
    """What the layer is meant to be."""
    import torch

    if isinstance(layer, Residual):
        return x + layer.scale * in_torch(layer.inner, parts, x)
    if isinstance(layer, NormedConvolution):
        w, gain, bias = parts
        z = torch.nn.functional.conv2d(x, w, padding=layer.size // 2)
        y = torch.nn.functional.batch_norm(z, None, None, gain, bias, training=True, eps=EPS).relu()
        return torch.nn.functional.max_pool2d(y, layer.pool)
    w, b = parts
    if isinstance(layer, Convolution):
        y = torch.nn.functional.conv2d(x, w, b, padding=layer.size // 2).relu()
        return torch.nn.functional.max_pool2d(y, layer.pool)
    z = x.flatten(1) @ w + b
    return {"relu": torch.relu, "tanh": torch.tanh, "none": lambda z: z}[layer.activation](z)


def passes(layer, seed=0, samples=5):
    """parts, x, (y, saved), dy; with biases that are not zero."""
    rng = np.random.default_rng(seed)
    parts = [part + 0.1 * rng.standard_normal(part.shape) for part in layer.start(rng)]
    x = rng.standard_normal((samples, *layer.inputs))
    y, saved = layer.forward(parts, x)
    return parts, x, y, saved, rng.standard_normal(y.shape)


@each_layer
def test_a_backward_pass_by_hand_is_the_one_of_autograd(layer):
    torch = pytest.importorskip("torch")
    parts, x, y, saved, dy = passes(layer)
    tensors = [torch.tensor(array, requires_grad=True) for array in (x, *parts)]
    expected = in_torch(layer, tensors[1:], tensors[0])
    dx0, *g0 = torch.autograd.grad(expected, tensors, torch.tensor(dy))

    dx, pending = layer.backward_input(parts, saved, dy)
    g = [np.full_like(part, np.nan) for part in parts]
    layer.backward_weights(g, pending)

    for ours, theirs in ((y, expected.detach()), (dx, dx0), *zip(g, g0, strict=True)):
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-11, atol=1e-12)


@each_layer
def test_shapes_are_as_declared(layer):
    parts, x, y, saved, dy = passes(layer)
    assert tuple(part.shape for part in parts) == layer.shapes
    assert y.shape[1:] == layer.outputs
    assert layer.backward_input(parts, saved, dy)[0].shape == x.shape


@each_layer
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
    layer.backward_weights([np.empty_like(part) for part in parts], pending)
    for was, now in zip(before, (*parts, x, *saved, dy), strict=True):
        np.testing.assert_array_equal(was, now)


def test_he_s_start_keeps_the_size_of_what_passes_a_relu():
    layer = Dense((1000,), 1000, "relu")
    parts = layer.start(np.random.default_rng(0))
    y, _ = layer.forward(parts, np.random.default_rng(1).standard_normal((50, 1000)))
    assert np.mean(y**2) == pytest.approx(1, rel=0.05)


def test_a_residual_block_must_give_what_it_takes():
    with pytest.raises(ValueError, match="output like its input"):
        Residual(Dense((3,), 4))
