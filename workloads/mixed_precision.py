"""Mixed precision: a model that computes in 16 bits, for weights that are kept and updated in float32.

The vector w of an algorithm, its optimizer's state and what it sends are float32: the master weights. A layer computes
as on tensor cores, which multiply 16-bit numbers and add in float32:

    forward            reads its weights rounded to 16 bits; y, and what is saved for backward, are rounded
    backward_input     reads the weights in the same way; dx, and what is pending, are rounded
    backward_weights   rounds the gradients, converts them to float32 and divides them by the loss scale

The loss is computed in float32; its gradient is multiplied by the loss scale and rounded. Every number that a layer
passes on is thus one that 16 bits can hold, but it is stored in float32, which NumPy and all kernels compute with.
Within a layer numbers are float32, as in a fused kernel, except for the queries, keys and values that attention reads.
Statistics of norms are float32, too. A price counts 2 bytes for each number and the device's rate for 16-bit products.
The conversions of weights and gradients are charged; the rounding of a kernel's outputs is part of that kernel on real
hardware, and is not.

    bf16   8 significant bits, the range of float32
    fp16   11 significant bits; 65504 is the largest number, 6e-8 the smallest: gradients need loss scaling

Source: Micikevicius et al., arXiv:1710.03740, section 3; torch.amp, which casts weights when a layer reads them.
"""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import kernels
from kernels import meter_kernels, price_in_16_bits
from kernels.arrays import arrays_in, extents
from workloads.layers import WrappingLayer
from workloads.loss_scale import current_scale

FORMATS = {"bf16": (8, -126), "fp16": (11, -14)}
"""Significant bits, and the exponent of the smallest normal number, of each format."""


@dataclass(frozen=True)
class RoundedLayer(WrappingLayer):
    """A layer that computes as `inner` does, but in a 16-bit format. All arrays, also parameters, are float32."""

    kind: str  # of FORMATS
    copies: bool = True  # whether it reads copies of float32 weights, whose conversion is charged

    @property
    def flops(self) -> int:
        return self.inner.flops

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def over_batch(self) -> bool:
        return self.inner.over_batch

    def start(self, generator):
        return self.inner.start(generator)

    def forward(self, parts, x):
        with nullcontext() if self.copies else meter_kernels(None):
            weights = self._weights(parts)
        with price_in_16_bits():
            y, saved = self.inner.forward(weights, x)
        self.round_arrays((y, saved))
        return y, saved

    def statistics(self, saved):
        return self.inner.statistics(saved)

    def evaluate(self, parts, x, statistics=None):
        y = self.inner.evaluate(self._weights(parts), x, statistics)
        self.round_arrays(y)
        return y

    def backward_input(self, parts, saved, dy, needed=True):
        with meter_kernels(None):  # the weights that forward has converted are still there
            weights = self._weights(parts)
        with price_in_16_bits():
            dx, pending = self.inner.backward_input(weights, saved, dy, needed)
        self.round_arrays((dx, pending))
        return dx, pending

    def backward_weights(self, gradients, pending):
        with price_in_16_bits():
            self.inner.backward_weights(gradients, pending)
        scale = current_scale()
        for gradient in gradients:
            flat = gradient.reshape(-1)
            kernels.round_to(flat, flat, *FORMATS[self.kind], -1)
            _multiply(flat, 1 / scale)  # by the kernel that converts it

    def scale_error(self, dy) -> None:
        """Multiply dy, the gradient of the loss at this layer's outputs, by the loss scale, and round it, in place."""
        _multiply(dy.reshape(-1), current_scale())
        self.round_arrays(dy)

    def _weights(self, parts) -> list:
        weights = [kernels.empty_like(part) for part in parts]
        for short, part in zip(weights, parts, strict=True):
            kernels.round_to(short.reshape(-1), part.reshape(-1), *FORMATS[self.kind], -1)
        return weights

    def round_arrays(self, nest: Any) -> None:
        """Round all arrays in nested tuples and lists, in place, except statistics, classes and tokens."""
        round_short(nest, self.kind)


class ShortWeights:
    """Weights that are kept in a 16-bit format alone, without master weights. Every update ends with rounding them.

    To nearest, an update of less than half a unit in the last place is lost. Stochastic rounding keeps it on average;
    its random numbers depend on the seed and the step alone, so ranks with equal weights stay equal.
    Source: Gupta et al., arXiv:1502.02551.
    """

    def __init__(self, kind: str, is_stochastic: bool, seed: int):
        self.format, self.is_stochastic, self.seed = FORMATS[kind], is_stochastic, seed

    def store(self, w, step: int) -> None:
        """Round w, (d,), in place. This is not charged, since the kernel that updates w writes it."""
        key = int(np.random.default_rng([self.seed, step + 1, 0x57]).integers(2**63)) if self.is_stochastic else -1
        with meter_kernels(None):
            kernels.round_to(w, w, *self.format, key)


def round_short(nest: Any, kind: str) -> None:
    """Round arrays to the 16-bit format `kind`, in place: those in nested tuples and lists for which `is_short` is
    true. If `kind` is "", do nothing.

    This is not charged, since the kernels that write them round.
    """
    if not kind:
        return
    with meter_kernels(None):
        for x in {id(x): x for x in arrays_in(nest) if is_short(x)}.values():
            flat = x.reshape(-1)
            kernels.round_to(flat, flat, *FORMATS[kind], -1)


def _multiply(vector, factor: float) -> None:
    """Multiply in place, without a charge."""
    if factor != 1:
        with meter_kernels(None):
            kernels.scale(vector, factor)


def is_short(x) -> bool:
    """Return whether hardware would keep `x` in 16 bits: a float32 array with an axis of samples and another one."""
    return x.ndim > 1 and str(x.dtype).endswith("float32")


def extents_in_16_bits(nest: Any) -> dict[int, int]:
    """Return the size in bytes of each array in nested tuples and lists, by address. Numbers that hardware would keep
    in 16 bits count two bytes each.
    """
    whole, short = extents(nest), extents([x for x in arrays_in(nest) if is_short(x)])
    return {address: nbytes // 2 if address in short else nbytes for address, nbytes in whole.items()}
