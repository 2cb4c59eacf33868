"""Supervised learning: a chain, samples with targets to train it on, and others to try it on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from workloads.sequential import Sequential
from workloads.workload import Evaluation


class Supervised:
    """The Workload of a chain and a data set.

    `train` and `test` are pairs (x, target); x is brought to the chain's shape, and fractional numbers to its numbers:
    whole ones are tokens or classes, to be looked up. `notes` are sentences that a reader of the results should know.
    """

    shuffle = True

    def __init__(self, name: str, chain: Sequential, train: tuple, test: tuple, notes: tuple[str, ...] = ()):
        self.name, self.chain, self.notes = name, chain, notes
        self.x, self.target = self._fitting(train)
        self.held_out = self._fitting(test)
        self.depth, self.tensors, self.activations = chain.depth, chain.tensors, chain.activations
        self.samples, self.parameters, self.dtype = len(self.x), chain.parameters, chain.dtype

    def start(self, seed: int) -> np.ndarray:
        """The first parameters."""
        return self.chain.start(seed)

    def batch(self, indices: np.ndarray) -> tuple:
        """(x, target) of these samples."""
        return self.x[indices], self.target[indices]

    def gradient(self, w, batch: tuple) -> tuple:
        """(loss, g): mean over the batch."""
        return self.chain.gradient(w, *batch)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Loss and accuracy on the held-out samples, all of them."""
        return self.chain.evaluate(w, *self.held_out)

    def split(self, stages: int | Sequence[int]) -> list[Sequential]:
        """The chain cut in so many stages, or in stages of so many layers each."""
        return self.chain.split(stages)

    def blocks(self, rank: int, ranks: int) -> list:
        """The chain's blocks dealt out by columns and rows, as far as `rank` has them. ValueError if they cannot be."""
        from workloads.tensor_split import blocks

        dealt = blocks(self.chain.layers, rank, ranks)
        if not dealt[-1].partial and self.chain.criterion.name != "softmax_cross_entropy":
            raise ValueError(
                f"{self.chain.depth} dense layers leave the last one without a partner and its outputs dealt out, "
                "which needs softmax cross-entropy; use one layer more or less."
            )
        return dealt

    @property
    def units(self) -> tuple[int, ...]:
        """How many outputs of each layer can be dealt out: units, or the filters of a convolution."""
        return tuple(layer.outputs[0] for layer in self.chain.layers)

    def unit_blocks(self, units: Sequence[int]) -> list:
        """The blocks of a rank that has so many units of each layer. ValueError if they cannot be dealt out."""
        from workloads.tensor_split import outputs

        return outputs(self.chain.layers, units)

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Numbers per sample that cross from each stage to the next."""
        return self.chain.boundaries(stages)

    def _fitting(self, samples: tuple) -> tuple:
        x, target = map(self._numbers, samples)
        return x.reshape(len(x), *self.chain.inputs), target

    def _numbers(self, x) -> np.ndarray:
        x = np.ascontiguousarray(x)
        return x if x.dtype.kind in "iu" else x.astype(self.chain.dtype, copy=False)
