"""Layers of a model, each with a forward pass and a backward pass in two halves.

    forward(parts, x)                -> (y, saved)       saved: what backward needs of this pass
    backward_input(parts, saved, dy) -> (dx, pending)    B: the layer before waits for it
    backward_weights(gradients, pending)                 W: only the optimizer waits for it
    add_weights(gradients, pending)                      the same, added to gradients of other samples
    evaluate(parts, x, statistics)   -> y                in evaluation: like forward, unless a layer overrides it

A layer does not hold its parameters: `parts` are passed in, in the shapes it declares, and may be any version of them.
backward_input multiplies by the transposed weights it is given; everything else comes from `saved`. Samples are the
first axis of every array; all arrays are contiguous.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np

import kernels

Activation = Literal["relu", "tanh", "none"]


class Layer(Protocol):
    """A layer of a model. Shapes are those of one sample. Layers inherit from this class."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]  # of the parameters, in the order of the flat vector
    flops: int  # of the forward pass, per sample
    over_batch: bool = False  # whether y depends on the other samples of the batch
    scratch: int = 0  # numbers per sample that backward computes again, and holds until it ends

    @property
    def name(self) -> str:
        """The kind of layer, such as "dense"."""
        return type(self).__name__.lower()

    @abstractmethod
    def start(self, generator: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Return the initial parameters, float64."""

    @abstractmethod
    def forward(self, parts, x) -> tuple[Any, tuple]:
        """Return (y, saved): the outputs, and what the backward pass needs."""

    def in_precision(self, kind: str) -> "Layer":
        """Return a copy that rounds all it stores and reads again within a pass to the 16-bit format `kind`.

        By default, a layer stores nothing of this sort and returns itself.
        """
        return self

    def with_recomputation(self) -> "Layer":
        """Return a copy that saves less, because its backward pass computes the rest again.

        By default, a layer cannot do so and returns itself.
        """
        return self

    def statistics(self, saved) -> Any:
        """Return the statistics of a forward pass of training samples that `evaluate` needs. They exist if y depends on
        the batch.
        """
        return None

    def evaluate(self, parts, x, statistics=None) -> Any:
        return self.forward(parts, x)[0]

    @abstractmethod
    def backward_input(self, parts, saved, dy, needed: bool = True) -> tuple[Any, tuple]:
        """Return (dx, pending): the gradient of the inputs, and what `backward_weights` needs.

        dx is None where it is not `needed`. The last element of `pending` is an array.
        """

    @abstractmethod
    def backward_weights(self, gradients, pending) -> None:
        """Write the gradients of the parameters, from the `pending` that `backward_input` returned.

        Losses are means over samples.
        """

    def add_weights(self, gradients, pending) -> None:
        """Add the gradients of the parameters to `gradients`. The sum is not charged."""
        own = [kernels.empty_like(part) for part in gradients]
        self.backward_weights(own, pending)
        with kernels.meter_kernels(None):
            for total, part in zip(gradients, own, strict=True):
                kernels.add(total.reshape(-1), part.reshape(-1))


@dataclass(frozen=True)
class Dense(Layer):
    """y = act(x w + b), a fully connected layer. Images are flattened."""

    inputs: tuple[int, ...]
    units: int
    activation: Activation = "relu"

    @property
    def outputs(self) -> tuple[int, ...]:
        return (self.units,)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (math.prod(self.inputs), self.units), (self.units,)

    @property
    def flops(self) -> int:
        return 2 * math.prod(self.inputs) * self.units + self.units

    def start(self, generator):
        return he(generator, self.shapes[0], math.prod(self.inputs), self.activation), np.zeros(self.units)

    def forward(self, parts, x):
        w, b = parts
        if len(self.inputs) > 1:
            x = x.reshape(len(x), -1)
        y = kernels.empty((len(x), self.units), x)
        kernels.dense_forward(y, x, w, b, self.activation == "relu")
        if self.activation == "tanh":
            kernels.tanh_forward(y, y)
        return y, (x, y)

    def backward_input(self, parts, saved, dy, needed=True):
        x, y = saved
        dz, dx = dy, None
        if self.activation != "none":
            dz = kernels.empty_like(dy)
            back = kernels.relu_backward if self.activation == "relu" else kernels.tanh_backward
            back(dz, dy, y)
        if needed:
            dx = kernels.empty_like(x)
            kernels.dense_backward_input(dx, dz, parts[0])
            if len(self.inputs) > 1:
                dx = dx.reshape(len(x), *self.inputs)
        return dx, (x, dz)

    def backward_weights(self, gradients, pending):
        kernels.dense_backward_weights(*gradients, *pending)

    def add_weights(self, gradients, pending):
        kernels.dense_backward_weights(*gradients, *pending, True)


@dataclass(frozen=True)
class WrappingLayer(Layer):
    """A layer that wraps the layer `inner` and has the same shapes."""

    inner: Layer

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.inner.inputs

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.inner.outputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return self.inner.shapes

    @property
    def scratch(self) -> int:
        return self.inner.scratch

    def with_recomputation(self) -> Layer:
        return replace(self, inner=self.inner.with_recomputation())


@dataclass(frozen=True)
class Residual(WrappingLayer):
    """y = x + scale * inner(x): a residual block.

    The initial weights are `gain` times He's. With gain 1 / n, the activations of n consecutive blocks stay bounded;
    with gain 1 they would grow exponentially in n.
    """

    scale: float = 0.5
    gain: float = 1.0

    def __post_init__(self):
        if self.inner.inputs != self.inner.outputs:
            raise ValueError(
                f"a residual block needs an output like its input, but they have the shapes {self.inner.outputs} and "
                f"{self.inner.inputs}."
            )

    @property
    def flops(self) -> int:
        return self.inner.flops + 2 * math.prod(self.outputs)

    def start(self, generator):
        w, b = self.inner.start(generator)
        return self.gain * w, b

    def forward(self, parts, x):
        a, saved = self.inner.forward(parts, x)
        y = kernels.empty_like(x)
        kernels.residual_add(y, x, a, self.scale)
        return y, saved

    def backward_input(self, parts, saved, dy, needed=True):
        dx, pending = self.inner.backward_input(parts, saved, self.scale * dy, needed)
        if needed:
            kernels.residual_add(dx, dx, dy, 1.0)
        return dx, pending

    def backward_weights(self, gradients, pending):
        self.inner.backward_weights(gradients, pending)

    def add_weights(self, gradients, pending):
        self.inner.add_weights(gradients, pending)


@dataclass(frozen=True)
class Convolution(Layer):
    """y = maxpool(relu(conv(x, w) + b)), with windows of `pool` x `pool`."""

    inputs: tuple[int, int, int]  # channels, height, width
    filters: int
    size: int = 3
    pool: int = 2

    @property
    def outputs(self) -> tuple[int, ...]:
        _, height, width = self.inputs
        return self.filters, height // self.pool, width // self.pool

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.filters, self.inputs[0], self.size, self.size), (self.filters,)

    @property
    def flops(self) -> int:
        return 2 * math.prod(self.inputs) * self.filters * self.size**2

    def start(self, generator):
        return he(generator, self.shapes[0], self.inputs[0] * self.size**2, "relu"), np.zeros(self.filters)

    def forward(self, parts, x):
        w, b = parts
        a = kernels.empty((len(x), self.filters, *self.inputs[1:]), x)
        y = kernels.empty((len(x), *self.outputs), x)
        kernels.conv2d_forward(a, x, w, b, True)
        kernels.max_pool_forward(y, a, self.pool)
        return y, (x, a, y)

    def backward_input(self, parts, saved, dy, needed=True):
        x, a, y = saved
        dz, dx = kernels.empty_like(a), None
        kernels.max_pool_backward(dz, dy, a, y, self.pool)
        kernels.relu_backward(dz, dz, a)
        if needed:
            dx = kernels.empty_like(x)
            kernels.conv2d_backward_input(dx, dz, parts[0])
        return dx, (x, dz)

    def backward_weights(self, gradients, pending):
        kernels.conv2d_backward_weights(*gradients, *pending)


def he(generator: np.random.Generator, shape: tuple[int, ...], fan_in: int, activation: Activation) -> np.ndarray:
    """Return normally distributed weights of variance 2 / fan_in before a ReLU, else 1 / fan_in, to preserve variance.

    Source: He et al., Delving Deep into Rectifiers, ICCV 2015.
    """
    w = generator.standard_normal(shape)
    w *= math.sqrt((2 if activation == "relu" else 1) / fan_in)  # in place, since a layer may be a gigabyte
    return w
