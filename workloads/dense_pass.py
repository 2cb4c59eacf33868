"""Dense pass: the gradient of dense layers and residual blocks in a row, which compiled code computes in one call.

The first pass over so many samples goes layer by layer and its prices are taken down; the passes after it charge them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

import kernels
from kernels.meter import Prices
from workloads.layers import Dense, Layer, Residual


class DensePass:
    """The pass of these layers; `by_layer` returns (loss, g) of (w, x, target) layer by layer."""

    def __init__(self, layers: Sequence[Dense | Residual], by_layer: Callable):
        self.by_layer = by_layer
        self.scales = np.array([layer.scale if isinstance(layer, Residual) else 0.0 for layer in layers])
        dense = [layer.inner if isinstance(layer, Residual) else layer for layer in layers]
        self.widths = np.array([math.prod(dense[0].inputs), *(layer.units for layer in dense)])
        self.activations = np.array([("none", "relu", "tanh").index(layer.activation) for layer in dense])
        self._prices: dict[tuple[int, int], Prices] = {}  # by samples, and bytes of a number

    @classmethod
    def of(cls, layers: Sequence[Layer], loss: kernels.Kernel, by_layer: Callable) -> Callable:
        """Return what computes (loss, g) of these layers: such a pass, or `by_layer` if there is none for them."""
        small = all(type(layer) is Dense or _is_block(layer) for layer in layers)
        return cls(layers, by_layer) if small and loss.name == "softmax_cross_entropy" else by_layer

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
            loss = loss_and_gradient(g, w, x, target, self.widths, self.activations, self.scales)
        prices.charge_again()
        return loss, g


def _is_block(layer: Layer) -> bool:
    """Return whether this is a residual block that adds something of a dense layer."""
    return type(layer) is Residual and type(layer.inner) is Dense and layer.scale != 0
