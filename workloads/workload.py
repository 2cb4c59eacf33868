"""Workload: a model and its data, as tasks, algorithms and evaluations use them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from kernels.arrays import extents
from knobs import Knobs
from workloads import shared_memory


class Evaluation(NamedTuple):
    """The quality of a model on held-out data. Accuracy is NaN if the workload has none."""

    loss: float
    accuracy: float


class DataKnobs(Knobs):
    """The settings of a workload. They tell the size of its data before the data are built."""

    @property
    def numbers(self) -> float:
        """The approximate number of values that building the workload creates or reads. It is 0 if there are always
        few.
        """
        return 0


class Workload(Protocol):
    """A model and its data. Parameters are one flat vector `w`, shape (parameters,).

    Workloads inherit from this class. Attributes with a default are optional; the default means that the workload does
    not have them.
    """

    name: str
    parameters: int
    depth: int = 1  # number of layers into which it can be cut; 1 if it cannot be cut
    tensors: tuple[tuple[slice, tuple[int, ...]], ...]  # slice of w and shape of each tensor of the model
    samples: int  # number in the training set
    held_out_samples: int = 0  # rows, images or characters over which accuracy is computed; 0 without accuracy
    shuffle: bool
    dtype: Any
    units: tuple[int, ...] = ()  # outputs of each layer that can be split over ranks: units, or a convolution's filters
    rows: tuple | None = None  # compressed sparse rows, as kernels expect them; None if gradients are dense
    Samples: type = shared_memory.Samples  # the samples of one step in shared memory
    activations: Mapping[int, int] = MappingProxyType({})  # number of samples -> bytes kept for backward, where known
    notes: tuple[str, ...] = ()  # sentences to show with the results
    over_batch: bool = False  # whether a sample's gradient depends on its batch, as with batch norm
    recomputes: str = "none"  # activations that backward passes compute again: none, selective or full
    in_16_bits: bool = False  # whether it computes in mixed precision
    launches_by_shape: bool = False  # whether what a gradient launches on a GPU depends on shapes only
    synchronises: bool = False  # whether layers over a batch can take that of all workers (`batch_statistics`)
    guessing: float | None = None  # held-out loss of guessing uniformly, or of predicting the mean; None if unknown
    target_variance: float | None = None  # of the held-out targets of a regression; None for classification

    @abstractmethod
    def start(self, seed: int) -> np.ndarray:
        """Return the initial parameters. They are seeded per layer, so every split of a model starts the same."""

    @abstractmethod
    def batch(self, indices: np.ndarray) -> tuple:
        """Return the samples at these indices, as arrays."""

    @abstractmethod
    def gradient(self, w: np.ndarray, batch: tuple) -> tuple[float, np.ndarray]:
        """Return (loss, g): the mean over the batch, and its gradient at w."""

    @abstractmethod
    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the held-out loss and accuracy at w."""

    def in_precision(self, kind: str, copies: bool = True) -> Workload:
        """Return a copy of this workload that computes in `kind`, "bf16" or "fp16". With `copies`, its layers read
        16-bit copies of float32 weights, whose conversion is charged.

        Raise ValueError if it cannot.
        """
        raise ValueError(
            f"precision: {self.name} cannot compute in {kind}, because it does not consist of Lockstep's own layers; "
            "use float32 or float64, or one of the workloads digits, spirals, mnist, table and text."
        )

    def with_recomputation(self, how: str = "full") -> Workload:
        """Return a copy of this workload that recomputes activations in backward passes: all ("full"), or attention
        weights only ("selective"). Raise ValueError if it cannot.
        """
        raise ValueError(
            f"recompute_activations: {self.name} does not consist of Lockstep's own layers, so none can be computed "
            "again; remove it, or use digits, spirals, mnist, table or text."
        )

    def extents(self, saved) -> dict[int, int]:
        """Return the size in bytes of each array in `saved`, nested tuples and lists, by address."""
        return extents(saved)

    def split(self, stages: int | Sequence[int]) -> list:
        """Return the model split into consecutive stages.

        `stages` is their number, with work as equal as layers allow, or a sequence with the number of layers of each.
        Raise ValueError if the model cannot be cut in this way.
        """
        raise ValueError(f"{self.name} has no layers to cut into stages; use digits, spirals, mnist or text instead.")

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Return the number of values per sample that pass from each stage to the next.

        Raise ValueError if `split` does.
        """
        raise ValueError(f"{self.name} has no layers to cut into stages; use digits, spirals, mnist or text instead.")

    def blocks(self, rank: int, ranks: int, holder: tuple[int, int] | None = None) -> list:
        """Return the blocks of `rank`, split by columns and rows. Raise ValueError if the layers cannot be split.

        `holder` is (holder, holders): the part of the experts that the rank has. Without it, experts are refused.
        """
        raise ValueError(f"{self.name} has no layers to split by columns and rows; use digits, spirals, mnist or text.")

    def sequence(self) -> tuple[int, int]:
        """Return the number of positions of a sample, and of attention heads. Raise ValueError without sequences."""
        raise ValueError(f"samples of {self.name} are not sequences, so ranks cannot share their positions; use text.")

    def experts(self) -> int:
        """Return the number of experts in each mixture. Raise ValueError without mixtures of experts."""
        raise ValueError(f"{self.name} has no experts for ranks to share; use text with 4 experts and 2 blocks.")

    def unit_blocks(self, units: Sequence[int]) -> list:
        """Return the blocks of a rank that has `units` of each layer. Raise ValueError if they cannot be split."""
        raise ValueError(f"{self.name} has no units to split; use digits, spirals or mnist.")
