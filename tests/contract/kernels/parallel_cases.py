"""Arguments of the kernels of tensor parallelism for a size n, the number of samples."""

from __future__ import annotations

import numpy as np

from tests.contract.kernels.layer_cases import normal

CLASSES, FIRST = 5, 3  # classes here, and the first of them


def bias_forward(rng, n, dtype):
    return (*normal(rng, dtype, (n, 3), (n, 3), (3,)), True)


def row_largest(rng, n, dtype):
    return normal(rng, dtype, (n,), (n, CLASSES))


def dealt(rng, n, dtype):
    """(z, largest, target): classes 3 to 7 of nine are here."""
    z, more = normal(rng, dtype, (n, CLASSES), (n,))
    return z, z.max(1) + np.abs(more), rng.integers(0, 9, n)


def vocabulary_sums(rng, n, dtype):
    return np.full((2, n), np.nan, dtype), *dealt(rng, n, dtype), FIRST


def vocabulary_cross_entropy(rng, n, dtype):
    z, largest, target = dealt(rng, n, dtype)
    dz, sums = normal(rng, dtype, (n, CLASSES), (2, n))
    return dz, z, largest, sums**2 + 5, target, FIRST


PARALLEL = {
    "bias_forward": bias_forward,
    "row_largest": row_largest,
    "vocabulary_sums": vocabulary_sums,
    "vocabulary_cross_entropy": vocabulary_cross_entropy,
}
