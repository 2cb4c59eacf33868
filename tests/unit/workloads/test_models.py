"""Models: what the knobs build, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from knobs import make
from workloads import models
from workloads.models import ModelKnobs
from workloads.sequential import Sequential


def shapes(inputs=(1, 8, 8), classes=10, **knobs):
    chain = models.build(ModelKnobs(**knobs), inputs, classes)
    return [layer.inputs for layer in chain.layers] + [chain.outputs]


def test_an_mlp_has_the_sizes_that_were_asked_for():
    assert shapes() == [(64,), (128,), (128,), (10,)]
    assert shapes(hidden=" 32, 16 ") == [(64,), (32,), (16,), (10,)]
    assert shapes(hidden="") == [(64,), (10,)]


def test_a_residual_model_is_a_row_of_equal_blocks():
    assert shapes(model="residual", depth=3, width=32) == [(64,), *[(32,)] * 4, (10,)]


@pytest.mark.parametrize("model", ["cnn", "cnn_bn"])
@pytest.mark.parametrize("pixels, flat", [(8, 16 * 2 * 2), (28, 16 * 7 * 7)])
def test_a_cnn_reads_small_and_large_images(model, pixels, flat):
    chain = models.build(ModelKnobs(model=model), (1, pixels, pixels), 10)
    assert chain.layers[2].shapes[0] == (flat, 64)
    y, _ = chain.forward(chain.start(0), np.zeros((2, 1, pixels, pixels), np.float32))
    assert y.shape == (2, 10)


NONSENSE = ["abc", "12,,3", "12;3", "-4", "1.5", "0", "128,0", "999999999", "1," * 64 + "1", "²"]


@pytest.mark.parametrize("text", NONSENSE)
def test_hidden_sizes_that_make_no_sense_are_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"hidden is .* for example 128,128") as refusal:
        make(ModelKnobs, {"hidden": text}, "digits")
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("model", ["cnn", "cnn_bn"])
def test_a_cnn_on_points_is_refused(model):
    with pytest.raises(ValueError, match="cnn needs images"):
        models.build(ModelKnobs(model=model), (2,), 3)


def test_depth_does_not_let_a_residual_model_grow_what_passes():
    for depth in (4, 64):
        chain = models.build(ModelKnobs(model="residual", depth=depth, width=64), (64,), 10)
        hidden = Sequential(chain.layers[:-1], chain.criterion, np.float64)
        y, _ = hidden.forward(hidden.start(0), np.random.default_rng(0).standard_normal((100, 64)))
        assert 0.5 < np.mean(y**2) < 5
