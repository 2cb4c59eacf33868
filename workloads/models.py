"""Models for supervised workloads, all of them sequential.

mlp        dense layers with ReLU, of the sizes in `hidden`
residual   a dense layer, `depth` equal blocks h + 1/2 act(h W + b), a dense layer: many layers to cut into stages
cnn        two convolutions with pooling, two dense layers; for images
cnn_bn     the same with batch norm in both convolutions
"""

import math
import re
from itertools import pairwise
from typing import Literal

import numpy as np
from pydantic import field_validator

import kernels
from knobs import knob
from workloads.batch_norm import NormedConvolution
from workloads.layers import Convolution, Dense, Layer, Residual
from workloads.sequential import Sequential
from workloads.workload import DataKnobs

MAX_WIDTH = 65536
MAX_HIDDEN = 64

MLP, DEEP, FILTERS = {"model": ("mlp",)}, {"model": ("residual",)}, {"model": ("cnn", "cnn_bn")}
"""The models to which some knobs are restricted."""


class ModelKnobs(DataKnobs):
    """The settings of the model of a supervised workload."""

    model: Literal["mlp", "residual", "cnn", "cnn_bn"] = knob("mlp", "network to train: mlp, residual, cnn or cnn_bn")
    hidden: str = knob("128,128", "sizes of the hidden layers; empty for none", example="128,128", when=MLP)
    depth: int = knob(16, "number of blocks", when=DEEP, ge=1, le=256, unit="blocks")
    width: int = knob(32, "neurons per block", when=DEEP, ge=1, le=8192, unit="neurons")
    channels: int = knob(
        8, "filters in the first convolution; the second has twice as many", when=FILTERS, ge=1, le=512
    )
    activation: Literal["relu", "tanh"] = knob(
        "relu", "activation function after each hidden layer: relu or tanh", unless=FILTERS
    )

    @field_validator("hidden")
    @classmethod
    def _sizes(cls, text: str) -> str:
        return ",".join(map(str, sizes(text)))


def sizes(text: str) -> list[int]:
    """Return the sizes of layers from a text such as "128,128". Raise ValueError for other text."""
    text = text.replace(" ", "")
    if not text:
        return []
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise ValueError(f"hidden is {text[:60]!r}; write layer sizes separated by commas, for example 128,128.")
    numbers = [int(size) for size in text.split(",")]
    if not all(1 <= size <= MAX_WIDTH for size in numbers) or len(numbers) > MAX_HIDDEN:
        raise ValueError(
            f"hidden is {text[:60]!r}; use at most {MAX_HIDDEN} sizes of 1 to {MAX_WIDTH}, for example 128,128."
        )
    return numbers


def build(
    knobs: ModelKnobs,
    inputs: tuple[int, ...],
    outputs: int,
    dtype=np.float32,
    loss: kernels.Kernel = kernels.softmax_cross_entropy,
) -> Sequential:
    """Return the model that the knobs describe.

    It maps samples of shape `inputs` to `outputs` numbers: a logit for each class, or the numbers to estimate.
    """
    make = {"mlp": mlp, "residual": residual, "cnn": cnn, "cnn_bn": cnn_bn}[knobs.model]
    return Sequential(make(knobs, inputs, outputs), loss, dtype)


def mlp(knobs: ModelKnobs, inputs: tuple[int, ...], classes: int) -> list[Layer]:
    widths = [math.prod(inputs), *sizes(knobs.hidden)]
    hidden = [Dense((a,), b, knobs.activation) for a, b in pairwise(widths)]
    return [*hidden, Dense((widths[-1],), classes, "none")]


def residual(knobs: ModelKnobs, inputs: tuple[int, ...], classes: int) -> list[Layer]:
    width = (knobs.width,)
    block = Residual(Dense(width, knobs.width, knobs.activation), gain=1 / knobs.depth)
    first = Dense((math.prod(inputs),), knobs.width, knobs.activation)
    return [first, *[block] * knobs.depth, Dense(width, classes, "none")]


def cnn(knobs: ModelKnobs, inputs: tuple[int, ...], classes: int, block=Convolution) -> list[Layer]:
    if len(inputs) != 3 or min(inputs[1:]) < 4:
        raise ValueError("model cnn needs images of at least 4 x 4 pixels, but this workload has none; use mlp.")
    one = block(inputs, knobs.channels)
    two = block(one.outputs, 2 * knobs.channels)
    dense = Dense(two.outputs, 64)
    return [one, two, dense, Dense(dense.outputs, classes, "none")]


def cnn_bn(knobs: ModelKnobs, inputs: tuple[int, ...], classes: int) -> list[Layer]:
    return cnn(knobs, inputs, classes, NormedConvolution)
