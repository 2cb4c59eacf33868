"""Calls of the kernels of sparse problems. No two rows have a coordinate in common, so any order gives the same."""

from __future__ import annotations

import numpy as np

ROWS = 12  # at most: some kernels go along all of w for each


def problem(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    """(w, rows, target, indptr, index, values, penalty) with n coordinates, three to a row."""
    count = min(n // 3, ROWS)
    index = rng.permutation(n)[: 3 * count].astype(np.int32)
    target = np.where(rng.random(count) < 0.5, -1, 1).astype(dtype)
    values = rng.uniform(0.5, 2, 3 * count).astype(dtype)
    w, penalty = rng.standard_normal(n).astype(dtype), rng.random(n).astype(dtype)
    return w, rng.permutation(count), target, 3 * np.arange(count + 1), index, values, penalty


def margins(rng, n, dtype):
    w, rows, *data, _ = problem(rng, n, dtype)
    return np.empty(len(rows), dtype), w, rows, *data


def logistic(rng, n, dtype):
    w, *data = problem(rng, n, dtype)
    return np.empty_like(w), w, *data


def hogwild(examples, atomic):
    def arguments(rng, n, dtype):
        w, *data = problem(rng, n, dtype)
        return w, np.zeros_like(w), *data, 0.3, examples, atomic

    return arguments


def svrg(rng, n, dtype):
    w, *data = problem(rng, n, dtype)
    anchor, slope = (rng.standard_normal(n).astype(dtype) for _ in range(2))
    return w, np.zeros_like(w), *data, anchor, slope, 0.3, False


SPARSE = {"margins": margins, "logistic": logistic, "hogwild": hogwild(1, False), "svrg": svrg}
