"""Sparse: logistic regression on rows that each have few of many features, like the words of documents.

    f(w) = mean over rows of log(1 + exp(-y x.w)) + l2/2 |w|^2          y is 1 or -1

Synthetic, from a fixed seed: the rows are the same in every run. The v-th feature is drawn about (v+1)^-skew times as
often as the first, so with `skew` 0 rows rarely share a feature, and with `skew` 1 the first few features are in most
rows. Rows have length 1; a row's y is 1 with probability 1 / (1 + exp(-x.t)) for a hidden t. A quarter as many
additional rows are held out. The penalty is distributed over rows as in `kernels/sparse/rows.py`, so a row's gradient
is as sparse as the row.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Literal

import numpy as np

import kernels
from knobs import knob
from workloads.shared_memory import Samples
from workloads.workload import DataKnobs, Evaluation, Workload

SEPARATION = 8.0  # standard deviation of the entries of t; the larger, the more certain is a row's y
SEED = 3  # of the rows
MOST = 2000  # largest number of features for which the minimum is computed


class Settings(DataKnobs):
    """The settings: the rows and their features, and how a model is evaluated."""

    rows: int = knob(8192, "number of samples", ge=1, le=10_000_000, unit="samples")
    features: int = knob(10_000, "features, one parameter each", ge=1, le=100_000_000)
    nonzeros: int = knob(
        16, "maximum number of non-zero features per row; one drawn twice counts once", ge=1, le=10_000
    )
    skew: float = knob(0.0, "how unevenly features occur: 0 is uniform, 1 is as uneven as words in text", ge=0, le=4)
    l2: float = knob(1e-4, "penalty on the squared length of the weights", ge=0, le=10)
    judged: Literal["unseen", "gap"] = knob("unseen", "what evaluation measures: unseen (held-out loss) or gap")

    @property
    def numbers(self) -> int:
        """The number of entries of the hidden model, the popularity of each feature, and all rows."""
        return 2 * self.features + 5 * self.rows * self.nonzeros // 4


def build(settings: Settings, dtype=np.float32, seed: int = SEED) -> Sparse:
    """Return the workload. Every run uses the rows drawn with SEED; an exercise uses rows drawn with a secret seed."""
    s = settings
    if s.rows * s.nonzeros > 2 * 10**8:
        raise ValueError(
            f"{s.rows} rows of {s.nonzeros} features do not fit in memory; use at most {2 * 10**8 // s.nonzeros} rows."
        )
    if s.judged == "gap" and s.features > MOST:
        raise ValueError(
            f"judged is gap, but the minimum is computed for at most {MOST} features, not {s.features}; "
            f"use judged unseen, or features {MOST}."
        )
    rng = np.random.default_rng(seed)
    truth = SEPARATION * rng.standard_normal(s.features)
    popularity = np.cumsum(np.arange(1, s.features + 1) ** -s.skew)
    held_out = _draw(rng, max(1, s.rows // 4), popularity, truth, s.nonzeros)
    return Sparse(*_draw(rng, s.rows, popularity, truth, s.nonzeros), held_out, s.features, s.l2, s.judged, dtype)


def _draw(rng: np.random.Generator, rows: int, popularity: np.ndarray, truth: np.ndarray, nonzeros: int) -> tuple:
    """Return (target, indptr, index, values) of `rows` random rows."""
    drawn = np.searchsorted(popularity, rng.random((rows, nonzeros)) * popularity[-1], side="right")
    drawn.sort(axis=1)
    first = np.ones(drawn.shape, bool)
    first[:, 1:] = drawn[:, 1:] != drawn[:, :-1]
    values = rng.standard_normal(drawn.shape) * first
    values /= np.sqrt(np.square(values).sum(1, keepdims=True))
    chance = 1 / (1 + np.exp(-(values * truth[drawn]).sum(1)))
    target = np.where(rng.random(rows) < chance, 1.0, -1.0)
    return target, np.concatenate([[0], np.cumsum(first.sum(1))]), drawn[first], values[first]


class SparseSamples(Samples):
    """The rows of one step. `coordinates` are the features of these rows or, if `dense`, all features."""

    def __init__(self, workload: Sparse, indices: np.ndarray, dense: bool = False):
        self.workload, self.indices, self._dense = workload, indices, dense
        target, indptr, index, values = workload.data
        if len(indices) == 1:
            rows = slice(indptr[indices[0]], indptr[indices[0] + 1])
            self._bounds = np.array([0, rows.stop - rows.start])
        else:
            lengths = (indptr[indices + 1] - indptr[indices]).astype(np.intp)  # 32 bits in a browser
            self._bounds = np.cumsum([0, *lengths])
            rows = np.arange(self._bounds[-1]) + np.repeat(indptr[indices] - self._bounds[:-1], lengths)
        if not dense:
            self.coordinates = index[rows] if len(indices) == 1 else np.unique(index[rows])
            self._target, self._index, self._values = target[indices], index[rows], values[rows]

    def gradient(self, w_v: np.ndarray) -> tuple[float, np.ndarray]:
        """Return (loss, g), sums over the rows. g has the shape of w_v, the parameters at their coordinates."""
        from kernels.sparse.rows import add_gradients  # only here, since it imports the compiler

        g = np.zeros_like(w_v)
        if self._dense:
            return add_gradients(g, w_v, self.indices, *self.workload.rows), g
        v, several = self.coordinates, len(self.indices) > 1
        places = np.searchsorted(v, self._index) if several else np.arange(len(v))
        rows = self._target, self._bounds, places, self._values, self.workload.penalty[v]
        return add_gradients(g, w_v, np.arange(len(self.indices)), *rows), g

    @property
    def price(self) -> tuple[float, float]:
        """The numbers of FLOPs and bytes of the step, not counting accesses to w."""
        along = self.workload.parameters if self._dense else 0
        numbers = self._bounds[-1]
        flops, words = 10 * numbers + 40, 3 * numbers + 3
        return 2 * flops + 3 * along if self._dense else flops, (words + 2 * along) * self.workload.dtype.itemsize


class Sparse(Workload):
    """The workload of compressed rows (target, indptr, index, values): see `kernels/sparse/rows.py`."""

    name, shuffle = "sparse", True
    Samples = SparseSamples

    def __init__(self, target, indptr, index, values, held_out, features, l2, judged="unseen", dtype=np.float64):
        self.dtype = np.dtype(dtype)
        self.data = self._fitting(target, indptr, index, values)
        self.held_out = self._fitting(*held_out)
        self.held_out_samples = len(held_out[0])
        self.samples, self.parameters, self.l2, self.judged = len(target), features, l2, judged
        self.guessing = math.log(2) if judged == "unseen" else None
        self.tensors = ((slice(0, features), (features,)),)
        owners = np.bincount(self.data[2], minlength=features)  # rows with this feature
        self.penalty = (l2 * len(target) / np.maximum(1, owners)).astype(self.dtype)
        self._on_device: dict[Any, tuple] = {}  # (*data, penalty) by device

    def start(self, seed: int = 0) -> np.ndarray:
        """Return zeros, whatever the seed."""
        return np.zeros(self.parameters, self.dtype)

    def batch(self, indices: np.ndarray) -> tuple:
        """Return the indices themselves, since the rows are not copied."""
        return (np.asarray(indices),)

    def gradient(self, w, batch: tuple) -> tuple:
        g = kernels.empty_like(w)
        return kernels.logistic(g, w, *batch, *self._data_for(w)), g

    @property
    def rows(self) -> tuple:
        """(target, indptr, index, values, penalty), as the sparse kernels expect them."""
        return *self.data, self.penalty

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return loss and accuracy on held-out rows. With `gap`, the loss is f's excess over its minimum."""
        with kernels.meter_kernels(None), np.errstate(all="ignore"):
            margins = self.margins(w, self.held_out)
            accuracy = float((margins > 0).mean())
            if self.judged == "gap":
                return Evaluation(self.objective(w) - self.minimum[1], accuracy)
            return Evaluation(float(np.logaddexp(0, -margins).mean()), accuracy)

    def objective(self, w: np.ndarray) -> float:
        """Return f(w), in float64."""
        w = w.astype(np.float64)
        with kernels.meter_kernels(None):
            return float(np.logaddexp(0, -self.margins(w, self.data)).mean() + self.l2 * float(w @ w) / 2)

    def margins(self, w: np.ndarray, data: tuple) -> np.ndarray:
        """Return y x.w for every row."""
        out = np.empty(len(data[0]), w.dtype)
        kernels.margins(out, w, np.arange(len(out)), *(x.astype(w.dtype) if x.dtype.kind == "f" else x for x in data))
        return out

    @cached_property
    def minimum(self) -> tuple[np.ndarray, float]:
        """(w, f(w)) at the minimum, found by Newton's method on all rows. This is fast for few features."""
        target, indptr, index, values = self.data
        x = np.zeros((self.samples, self.parameters))
        x[np.repeat(np.arange(self.samples), np.diff(indptr).astype(np.intp)), index] = values
        x *= target[:, None]
        w = np.zeros(self.parameters)
        for _ in range(50):
            wrong = 1 / (1 + np.exp(x @ w))
            g = self.l2 * w - x.T @ wrong / self.samples
            if np.abs(g).max() < 1e-13:
                break
            hessian = (x.T * (wrong * (1 - wrong))) @ x / self.samples
            hessian[np.diag_indices_from(hessian)] += max(self.l2, 1e-12)
            w -= np.linalg.solve(hessian, g)
        return w, self.objective(w)

    def _fitting(self, target, indptr, index, values) -> tuple:
        numbers = (np.ascontiguousarray(x, self.dtype) for x in (target, values))
        y, values = numbers
        return y, np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(index, np.int32), values

    def _data_for(self, w) -> tuple:
        """Return (target, indptr, index, values, penalty) on w's device."""
        if w.device not in self._on_device:
            self._on_device[w.device] = tuple(kernels.beside(x, w) for x in (*self.data, self.penalty))
        return self._on_device[w.device]
