"""Workload: a model and its data, as tasks and evaluations see them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np


class Evaluation(NamedTuple):
    """The quality of a model on held-out data; accuracy is NaN where the workload has none."""

    loss: float
    accuracy: float


class Workload(Protocol):
    """A model and its data. Parameters are one flat vector `w`, shape (parameters,)."""

    name: str
    parameters: int
    depth: int  # layers that it can be cut in; 1 if it cannot be
    tensors: tuple[tuple[slice, tuple[int, ...]], ...]  # slice of w and shape of each tensor of the model
    samples: int  # in the training set
    shuffle: bool
    dtype: Any

    def start(self, seed: int) -> np.ndarray:
        """Return the initial parameters; seeded per layer, so every split of a model starts from the same numbers."""

    def batch(self, indices: np.ndarray) -> tuple:
        """Return the samples at these indices, as arrays."""

    def gradient(self, w: np.ndarray, batch: tuple) -> tuple[float, np.ndarray]:
        """Return (loss, g): the mean over the batch, and its gradient at w."""

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return the held-out loss and accuracy at w."""

    def split(self, stages: int | Sequence[int]) -> list:
        """Return the model as consecutive stages: so many, as equal in work as layers allow, or stages of so many
        layers each. ValueError if it cannot be cut so."""

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Return how many numbers per sample cross from each stage to the next."""
