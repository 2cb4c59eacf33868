"""The exponential in plain arithmetic: as near as the library's, and the same at the ends."""

import numpy as np
import pytest
from numba import njit

from kernels.layers.exponential import HIGHEST, LOWEST, exp


@njit
def each(y, x):
    for i in range(y.size):
        y[i] = exp(x[i])


def exponentials(x):
    y = np.empty_like(x)
    each(y, x)
    return y


def test_it_is_within_a_unit_in_the_last_place_wherever_a_number_is_normal():
    x = np.linspace(LOWEST, HIGHEST, 1_000_001).astype(np.float32)[1:-1]
    exact = np.exp(x.astype(np.float64))
    assert (np.abs(exponentials(x) - exact) / np.spacing(exact.astype(np.float32))).max() < 1


def test_it_is_one_at_zero_and_neither_end_nor_a_nan_is_lost():
    x = np.array([0, np.nan, 89, np.inf, -88, -np.inf], np.float32)
    np.testing.assert_array_equal(exponentials(x), np.array([1, np.nan, np.inf, np.inf, 0, 0], np.float32))


@pytest.mark.parametrize("x", [-700.0, -1.0, 0.5, 700.0])
def test_in_double_precision_it_is_the_librarys(x):
    assert exponentials(np.array([x]))[0] == np.exp(x)


def test_the_loop_over_single_precision_does_eight_numbers_at_once():
    exponentials(np.zeros(1, np.float32))
    code = next(text for types, text in each.inspect_llvm().items() if "float32" in str(types))
    assert "x float> " in code
