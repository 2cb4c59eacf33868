"""Supervised learning: a sequential model, with samples and targets for training and others for evaluation."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import numpy as np

from workloads.sequential import Sequential
from workloads.workload import Evaluation, Workload

NOTHING_SAVED = (
    "Selective recomputation holds the attention weights of one layer at a time, and this model has only one: "
    "unless a pipeline has several micro-batches under way, it takes longer and saves no memory. Use a larger depth."
)


class Supervised(Workload):
    """The workload of a sequential model and a data set.

    `train` and `test` are pairs (x, target). x is reshaped to the model's inputs, and both are cast to its dtype,
    except for integers, which are tokens or classes. `notes` are shown with the results.

    What people see of a sample: `labels` are the names of the classes, by default their numbers; `image` is the
    (height, width) of a sample that is one; `examples`, each with a text for each of `columns`, are the first held-out
    samples of a table; `unit` is the mean and standard deviation of a number to estimate, before it was standardised.
    """

    shuffle = True
    launches_by_shape = True  # layers that break this read numbers from the GPU, which refuses the capture

    def __init__(
        self,
        name: str,
        model: Sequential,
        train: tuple,
        test: tuple,
        notes: tuple[str, ...] = (),
        *,
        labels: tuple[str, ...] = (),
        image: tuple[int, ...] = (),
        columns: tuple[str, ...] = (),
        examples: Sequence[tuple[str, ...]] = (),
        unit: tuple[float, float] = (0.0, 1.0),
    ):
        self.name, self.model, self.notes = name, model, notes
        self.labels, self.image, self.columns, self.examples, self.unit = labels, image, columns, examples, unit
        self.x, self.target = self._fitting(train)
        self.held_out = self._fitting(test)
        self.classifies = model.criterion.name == "softmax_cross_entropy"
        self.held_out_samples = self.held_out[1].size if self.classifies else 0
        self.target_variance = None if self.classifies else float(self.held_out[1].var(0, dtype=float).sum())
        self.depth, self.tensors, self.activations = model.depth, model.tensors, model.activations
        self.over_batch = self.synchronises = model.over_batch
        self.samples, self.parameters, self.dtype = len(self.x), model.parameters, model.dtype

    @property
    def guessing(self) -> float | None:
        """The loss of guessing without a look at the sample.

        A classifier guesses uniformly; the loss is then the logarithm of the number of classes. A regression guesses
        the mean; the loss is then half the variance of the held-out targets.
        """
        return math.log(self.model.outputs[-1]) if self.classifies else self.target_variance / 2

    def in_precision(self, kind: str, copies: bool = True) -> Supervised:
        other = copy.copy(self)
        other.model = model = self.model.in_precision(kind, copies)
        other.activations, other.in_16_bits = model.activations, True
        other.x, other.held_out = model.round_inputs(self.x), (model.round_inputs(self.held_out[0]), self.held_out[1])
        return other

    def with_recomputation(self, how: str = "full") -> Supervised:
        other = copy.copy(self)
        other.model = self.model.with_recomputation(how)
        other.activations, other.recomputes = other.model.activations, how
        if how == "selective" and sum(layer.scratch > 0 for layer in other.model.layers) == 1:
            other.notes = *self.notes, NOTHING_SAVED
        return other

    def extents(self, saved) -> dict[int, int]:
        return self.model.extents(saved)

    def start(self, seed: int) -> np.ndarray:
        return self.model.start(seed)

    def batch(self, indices: np.ndarray) -> tuple:
        return self.x[indices], self.target[indices]

    def gradient(self, w, batch: tuple) -> tuple:
        return self.model.gradient(w, *batch)

    def evaluate(self, w: np.ndarray) -> Evaluation:
        return self.model.evaluate(w, *self.held_out, self.x)

    def split(self, stages: int | Sequence[int]) -> list[Sequential]:
        return self.model.split(stages)

    def blocks(self, rank: int, ranks: int, holder: tuple[int, int] | None = None) -> list:
        from workloads.tensor_split import blocks

        self._check_whole("split by columns and rows")
        own = blocks(self.model.layers, rank, ranks, holder)
        if not own[-1].partial and not self.classifies:
            raise ValueError(
                f"with {self.model.depth} dense layers the last one has no partner and its outputs stay split, which "
                "needs softmax cross-entropy; add or remove one layer."
            )
        return own

    def sequence(self) -> tuple[int, int]:
        from workloads.transformer import AttentionBlock

        self._check_whole("interrupted within attention")
        heads = [layer.heads for layer in self.model.layers if isinstance(layer, AttentionBlock)]
        return (self.model.inputs[0], heads[0]) if heads else super().sequence()

    def experts(self) -> int:
        from workloads.experts import MoeBlock

        self._check_whole("divided among ranks by experts")
        numbers = [layer.experts for layer in self.model.layers if isinstance(layer, MoeBlock)]
        return numbers[0] if numbers else super().experts()

    @property
    def units(self) -> tuple[int, ...]:
        """The number of outputs of each layer: its units or, for a convolution, its filters."""
        return tuple(layer.outputs[0] for layer in self.model.layers)

    def unit_blocks(self, units: Sequence[int]) -> list:
        from workloads.tensor_split import outputs

        self._check_whole("split unit by unit")
        return outputs(self.model.layers, units)

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        return self.model.boundaries(stages)

    def _check_whole(self, how: str) -> None:
        """Raise ValueError in mixed precision, because parts of layers do not round what they compute.

        `how` says, for the message, how layers would be divided.
        """
        if self.in_16_bits:
            raise ValueError(
                f"precision: layers that compute in 16 bits cannot be {how}; use float32, or a method that computes "
                "whole layers, such as sync_sgd, zero3 or gpipe."
            )

    def _fitting(self, samples: tuple) -> tuple:
        x, target = map(self._numbers, samples)
        return x.reshape(len(x), *self.model.inputs), target

    def _numbers(self, x) -> np.ndarray:
        x = np.ascontiguousarray(x)
        return x if x.dtype.kind in "iu" else x.astype(self.model.dtype, copy=False)
