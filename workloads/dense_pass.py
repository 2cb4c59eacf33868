"""Dense pass: the gradient of dense layers in a row, which compiled code computes in one call.

The first pass over so many samples goes layer by layer and its prices are taken down; the passes after it charge them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import kernels
from kernels.meter import Prices
from workloads.layers import Dense, Layer


class DensePass:
    """The pass of these layers; `by_layer` returns (loss, g) of (w, x, target) layer by layer."""

    def __init__(self, layers: Sequence[Dense], by_layer: Callable):
        self.by_layer = by_layer
        self.widths = np.array([math.prod(layers[0].inputs), *(layer.units for layer in layers)])
        self.activations = np.array([("none", "relu", "tanh").index(layer.activation) for layer in layers])
        self._prices: dict[tuple[int, int], Prices] = {}  # by samples, and bytes of a number

    @classmethod
    def of(cls, layers: Sequence[Layer], loss: kernels.Kernel, by_layer: Callable) -> Callable:
        """Return what computes (loss, g) of these layers: such a pass, or `by_layer` if there is none for them."""
        dense = all(type(layer) is Dense for layer in layers) and loss.name == "softmax_cross_entropy"
        return cls(layers, by_layer) if dense else by_layer

    def __call__(self, w, x, target) -> tuple:
        """Return (loss, g); layer by layer on a GPU."""
        if not isinstance(w, np.ndarray):
            return self.by_layer(w, x, target)
        kind = len(x), x.itemsize
        prices = self._prices.get(kind)
        if prices is None:
            prices = Prices()
            with kernels.metered(prices):
                loss, g = self.by_layer(w, x, target)
            self._prices[kind] = prices
        else:
            from kernels.layers.dense_pass import loss_and_gradient  # Numba, which an import of ours does without

            g = np.empty_like(w)
            loss = loss_and_gradient(g, w, x, target, self.widths, self.activations)
        prices.charge_again()
        return loss, g
