"""Exponential and tanh in plain arithmetic: as near as the library's, and the same at the ends."""

import numpy as np
import pytest
from numba import njit

from kernels.layers.exponential import HIGHEST, LOWEST, SMALL, exp, tanh


@njit
def each(y, x):
    for i in range(y.size):
        y[i] = exp(x[i])


@njit(error_model="numpy")  # as kernels are: a division asks nothing
def each_tanh(y, x):
    for i in range(y.size):
        y[i] = tanh(x[i])


def tangents(x):
    y = np.empty_like(x)
    each_tanh(y, x)
    return y


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


def test_tanh_is_within_one_and_a_half_units_in_the_last_place_also_where_its_two_forms_meet():
    ends = (
        np.linspace(-12, 12, 1_000_001),
        np.linspace(SMALL - 1e-4, SMALL + 1e-4, 10_001),
        np.geomspace(1e-30, 1, 10_001),
    )
    x = np.concatenate(ends).astype(np.float32)
    exact = np.tanh(x.astype(np.float64))
    units = np.spacing(np.maximum(np.abs(exact).astype(np.float32), np.finfo(np.float32).tiny))
    assert (np.abs(tangents(x) - exact) / units).max() < 1.5


def test_tanh_is_odd_and_neither_end_nor_a_nan_is_lost():
    x = np.array([0, 0.3, 2, 100, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(tangents(-x), -tangents(x))
    np.testing.assert_array_equal(tangents(x)[[0, 3, 4, 5]], np.array([0, 1, 1, np.nan], np.float32))


@pytest.mark.parametrize("x", [-30.0, -0.2, 0.7])
def test_in_double_precision_tanh_is_the_librarys(x):
    assert tangents(np.array([x]))[0] == pytest.approx(np.tanh(x), rel=1e-15)


@pytest.mark.parametrize("x", [-700.0, -1.0, 0.5, 700.0])
def test_in_double_precision_it_is_the_librarys(x):
    assert exponentials(np.array([x]))[0] == np.exp(x)


@pytest.mark.parametrize("loop", [each, each_tanh], ids=["exp", "tanh"])
def test_the_loop_over_single_precision_does_eight_numbers_at_once(loop):
    loop(np.zeros(1, np.float32), np.zeros(1, np.float32))
    code = next(text for types, text in loop.inspect_llvm().items() if "float32" in str(types))
    assert "x float> " in code
