"""Published models: what is counted from shapes is what the literature prints."""

import math

import pytest

from theory import published_models
from theory.published_models import MODELS, profile


def parameters(name):
    return sum(layer.parameters for layer in MODELS[name]())


def macs(name):
    return sum(layer.macs for layer in MODELS[name]())


@pytest.mark.parametrize(
    ("name", "expected"),
    [("VGG-16", 138_357_544), ("ResNet-50", 25_557_032), ("GPT-2", 124_439_808), ("GPT-2 XL", 1_557_611_200)],
)
def test_parameters_are_those_of_the_published_weights(name, expected):
    assert parameters(name) == expected


def test_multiply_adds_of_an_image_are_those_that_torchvision_prints():
    assert macs("VGG-16") == pytest.approx(15.47e9, rel=1e-3)
    assert macs("ResNet-50") == pytest.approx(4.09e9, rel=1e-3)


def test_a_token_of_gpt2_takes_a_multiply_add_for_each_weight_and_the_scores():
    blocks, width, length = 12, 768, 1024
    dense = parameters("GPT-2") - length * width  # places are added and not multiplied
    assert macs("GPT-2") / length == pytest.approx(dense + blocks * 2 * length * width, rel=2e-3)


def test_a_block_keeps_and_splits_what_korthikanti_counts_without_dropout():
    width, length, heads, ranks = 1600, 1024, 25, 8
    block = published_models.gpt2_xl()[1]
    bytes_in_half_precision = length * width * (34 + 5 * heads * length / width)
    masks = length * width * 2 + heads * length**2 * 3  # of dropout: two of a byte, and the scores' mask and result
    assert 2 * block.kept == bytes_in_half_precision - masks
    assert 2 * (block.summed + (block.kept - block.summed) / ranks) == length * width * (
        8 + 24 / ranks + 2 * heads * length / width / ranks
    )


def test_the_layers_of_an_image_model_hand_on_what_the_next_one_reads():
    vgg = {layer.name: layer for layer in MODELS["VGG-16"]()}
    assert vgg["conv5_3"].outputs == 512 * 7 * 7 and vgg["fc6"].parameters == (512 * 7 * 7 + 1) * 4096
    resnet = {layer.name: layer for layer in MODELS["ResNet-50"]()}
    assert resnet["block5_3"].outputs == 2048 * 7 * 7 and resnet["fc"].parameters == 2048 * 1000 + 1000


def test_a_profile_has_two_flops_for_a_multiply_add_and_twice_as_long_a_backward():
    made = profile(MODELS["VGG-16"](), batch=32, flops=1e12)
    assert math.isclose(sum(made.forward), 2 * 32 * macs("VGG-16") / 1e12)
    assert made.backward == tuple(2 * seconds for seconds in made.forward)
    assert sum(made.weights) == 4 * parameters("VGG-16")
