"""Workload: a model and its data, as tasks, algorithms and evaluations see them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np

from knobs import Knobs
from workloads import shared_memory


class Evaluation(NamedTuple):
    """The quality of a model on held-out data; accuracy is NaN where the workload has none."""

    loss: float
    accuracy: float


class DataKnobs(Knobs):
    """Settings of a workload, which say how large its data are before they are there."""

    @property
    def numbers(self) -> float:
        """How many numbers are made or read to build the workload, about; 0 where they are few, whatever the values."""
        return 0


class Workload(Protocol):
    """A model and its data. Parameters are one flat vector `w`, shape (parameters,).

    Workloads inherit from it. What has a default here is optional; the default says that the workload has none.
    """

    name: str
    parameters: int
    depth: int = 1  # layers that it can be cut in; 1 if it cannot be
    tensors: tuple[tuple[slice, tuple[int, ...]], ...]  # slice of w and shape of each tensor of the model
    samples: int  # in the training set
    held_out_samples: int = 0  # that accuracy is a share of: rows, images, or characters of a text; 0 without accuracy
    shuffle: bool
    dtype: Any
    units: tuple[int, ...] = ()  # outputs of each layer that can be split over ranks: units, or a convolution's filters
    rows: tuple | None = None  # compressed sparse rows, as kernels take them; None where gradients are dense
    Samples: type = shared_memory.Samples  # one step's samples in shared memory
    activations: Mapping[int, int] = MappingProxyType({})  # samples -> bytes kept for backward, where they are known
    notes: tuple[str, ...] = ()  # sentences to show beside the results
    over_batch: bool = False  # whether a sample's gradient depends on its batch, as with batch norm
    synchronises: bool = False  # whether layers over a batch can take that of all workers (`batch_statistics`)
    guessing: float | None = None  # held-out loss of the same chance for every class, or of the mean; None if unknown
    target_variance: float | None = None  # of the held-out numbers of a regression by half the mean squared error

    @abstractmethod
    def start(self, seed: int) -> np.ndarray:
        """Return the initial parameters; seeded per layer, so every split of a model starts from the same numbers."""

    @abstractmethod
    def batch(self, indices: np.ndarray) -> tuple:
        """Return the samples at these indices, as arrays."""

    @abstractmethod
    def gradient(self, w: np.ndarray, batch: tuple) -> tuple[float, np.ndarray]:
        """Return (loss, g): the mean over the batch, and its gradient at w."""

    @abstractmethod
    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the held-out loss and accuracy at w."""

    def split(self, stages: int | Sequence[int]) -> list:
        """Return the model as consecutive stages: so many, as equal in work as layers allow, or stages of so many
        layers each. ValueError if it cannot be cut so."""
        raise ValueError(f"{self.name} has no layers to cut in stages; use digits, spirals, mnist or text instead.")

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Return how many numbers per sample cross from each stage to the next. ValueError as for `split`."""
        raise ValueError(f"{self.name} has no layers to cut in stages; use digits, spirals, mnist or text instead.")

    def blocks(self, rank: int, ranks: int) -> list:
        """Return the blocks of `rank`, split by columns and rows; ValueError if the layers cannot be split so."""
        raise ValueError(
            f"{self.name} has no layers to be cut by columns and rows; use digits, spirals, mnist or text."
        )

    def unit_blocks(self, units: Sequence[int]) -> list:
        """Return the blocks of a rank that has so many units of each layer; ValueError if they cannot be split."""
        raise ValueError(f"{self.name} has no units to split; use digits, spirals or mnist.")
