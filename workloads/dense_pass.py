"""Dense pass: the gradient of a stack of dense layers and residual blocks, computed in one call of compiled code.

The first pass for a given batch size runs layer by layer and records the kernels' prices; later passes charge those.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

import kernels
from kernels.meter import Prices
from workloads.layers import Dense, Layer, Residual


class DensePass:
    """A function of (w, x, target) that computes (loss, g) in one compiled pass through `layers`. `by_layer` computes
    the same values layer by layer.
    """

    def __init__(self, layers: Sequence[Dense | Residual], by_layer: Callable):
        self.by_layer = by_layer
        self.scales = np.array([layer.scale if isinstance(layer, Residual) else 0.0 for layer in layers])
        dense = [layer.inner if isinstance(layer, Residual) else layer for layer in layers]
        self.widths = np.array([math.prod(dense[0].inputs), *(layer.units for layer in dense)])
        self.activations = np.array([("none", "relu", "tanh").index(layer.activation) for layer in dense])
        self._prices: dict[tuple[int, int], Prices] = {}  # by (number of samples, bytes per number)

    @classmethod
    def of(cls, layers: Sequence[Layer], loss: kernels.Kernel, by_layer: Callable) -> Callable:
        """Return a DensePass for these layers if it supports all of them and the loss, else `by_layer`."""
        small = all(type(layer) is Dense or _is_block(layer) for layer in layers)
        return cls(layers, by_layer) if small and loss.name == "softmax_cross_entropy" else by_layer

    def __call__(self, w, x, target) -> tuple:
        """Return (loss, g). On a GPU, and where no compiled code exists, they are computed layer by layer."""
        if not isinstance(w, np.ndarray) or not kernels.are_compiled():
            return self.by_layer(w, x, target)
        kind = len(x), x.itemsize
        prices = self._prices.get(kind)
        if prices is None:
            prices = Prices()
            with kernels.meter_kernels(prices):
                loss, g = self.by_layer(w, x, target)
            self._prices[kind] = prices
        else:
            from kernels.layers.dense_pass import loss_and_gradient  # only here, since it loads Numba

            g = np.empty_like(w)
            loss = loss_and_gradient(g, w, x, target, self.widths, self.activations, self.scales)
        prices.charge_again()
        return loss, g


def _is_block(layer: Layer) -> bool:
    """Return whether `layer` is a residual block around a dense layer, with a scale other than 0."""
    return type(layer) is Residual and type(layer.inner) is Dense and layer.scale != 0
