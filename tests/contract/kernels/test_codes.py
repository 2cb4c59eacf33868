"""Codes: what a vector becomes in few bits, and what is left of it when it comes back."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import kernels
from kernels.compression import gram_schmidt, pack
from kernels.gpu import simulate_gpu
from tests.contract.kernels.cases import SIZES
from tests.contract.kernels.code_cases import MORE
from tests.contract.kernels.test_implementations import expect_same, outcome

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])
other_cases = pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, arguments) for name, several in MORE.items() for arguments in several],
    ids=[f"{name}-{number}" for name, several in MORE.items() for number in range(len(several))],
)


def draw(seed: int, dtype: type, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@other_cases
@both_types
def test_the_cpu_implementation_computes_the_reference_with_other_settings_too(name, arguments, dtype):
    kernel = getattr(kernels, name).module
    for n in SIZES:
        args = arguments(np.random.default_rng(n), n, dtype)
        expected = outcome(kernel.reference, copy.deepcopy(args))
        expect_same(name, dtype, outcome(kernel.cpu, args), expected, said=f"of {n}")


@pytest.mark.cudasim
@other_cases
def test_the_gpu_implementation_computes_the_reference_in_the_simulator_with_other_settings_too(name, arguments):
    kernel, args = getattr(kernels, name).module, arguments(np.random.default_rng(1), 83, np.float32)
    expected = outcome(kernel.reference, copy.deepcopy(args))
    with simulate_gpu():
        expect_same(name, np.float32, outcome(kernel.gpu, args), expected)


@pytest.mark.parametrize("width", range(1, 17))
def test_codes_of_any_width_come_back(width):
    codes = np.random.default_rng(width).integers(0, 2**width, 1001)
    packed = np.empty(pack.size(1001, width), np.uint8)
    kernels.pack(packed, codes, width)
    assert [pack.field(packed, i, width) for i in range(1001)] == codes.tolist()


def test_packing_takes_no_more_bytes_than_the_bits_need():
    assert [pack.size(n, 1) for n in (0, 1, 8, 9)] == [0, 1, 1, 2]
    assert pack.size(1000, 3) == 375


def test_packing_into_too_little_room_is_refused():
    with pytest.raises(ValueError, match="packed"):
        kernels.pack(np.empty(1, np.uint8), np.zeros(9, np.uint8), 1)


@both_types
def test_no_other_two_numbers_are_nearer_to_a_run_than_its_two_means(dtype):
    v, edges = draw(0, dtype, 1000), np.array([0, 1000])
    low, high = np.empty(1, dtype), np.empty(1, dtype)
    kernels.two_means(low, high, v, edges)

    def distance(below, above):
        return np.square(v - np.where(v >= 0, above, below), dtype=float).sum()

    best = distance(low, high)
    for step in (-0.01, 0.01):
        assert distance(low + step, high) > best
        assert distance(low, high + step) > best


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_norm_of_a_run_with_no_number_is_none(order, bad):
    v, out = np.ones(30), np.empty(3)
    v[11] = bad
    kernels.norms(out, v, np.array([0, 10, 20, 30]), order)
    assert np.isfinite(out).tolist() == [True, False, True]


def test_a_dither_of_zeros_is_zeros_and_of_the_scale_is_the_scale():
    v, codes = np.array([0.0, 2.0, -2.0, 0.0]), np.empty(4, np.uint8)
    kernels.stochastic_quantize(codes, v, np.array([2.0]), np.array([0, 4]), 3, 99)
    assert codes.tolist() == [3, 6, 0, 3]


def test_another_key_throws_other_dice():
    v, edges = np.full(1000, 0.5), np.array([0, 1000])
    codes = np.empty((2, 1000), np.uint8)
    for row, key in zip(codes, (1, 2), strict=True):
        kernels.stochastic_quantize(row, v, np.ones(1), edges, 1, key)
    assert 0.4 < (codes[0] == codes[1]).mean() < 0.6  # as likely the same as not


def test_the_dice_are_even():
    codes, v = np.empty(10**6, np.uint8), np.full(10**6, 0.3)
    kernels.stochastic_quantize(codes, v, np.ones(1), np.array([0, 10**6]), 1, 5)
    ups = codes - 1.0
    assert abs(ups.mean() - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 10**6)
    neighbours = np.corrcoef(ups[:-1], ups[1:])[0, 1]
    assert abs(neighbours) < 4 / np.sqrt(10**6)


@both_types
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_spoils_its_block_of_fixed_point_and_no_other(dtype, bad):
    v = draw(1, dtype, 24)
    v[10] = bad
    codes, exponents, out = np.empty(24, np.int8), np.empty(3, np.int8), np.empty(24, dtype)
    kernels.to_fixed(codes, exponents, v, 8)
    kernels.from_fixed(out, codes, exponents, 8)
    assert np.isfinite(out).reshape(3, 8).all(1).tolist() == [True, False, True]


def test_every_nan_stays_a_nan_in_bf16():
    words = np.array([0x7F800001, 0x7FC00000, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7FFF8000], np.uint32)
    codes, out = np.empty(6, np.uint16), np.empty(6, np.float32)
    kernels.to_bf16(codes, words.view(np.float32))
    kernels.from_bf16(out, codes)
    assert np.isnan(out).all()


def test_bf16_rounds_to_the_nearest_and_ties_to_even():
    ulp = 2.0**-7  # of numbers from 1 to 2
    v = np.array([1 + 0.5 * ulp, 1 + 1.5 * ulp, 1 + 0.51 * ulp, -1 - 0.49 * ulp, 3.4e38, -np.inf, 0.0], np.float32)
    codes, out = np.empty(7, np.uint16), np.empty(7, np.float32)
    kernels.to_bf16(codes, v)
    kernels.from_bf16(out, codes)
    assert out.tolist() == [1.0, 1 + 2 * ulp, 1 + ulp, -1.0, np.inf, -np.inf, 0.0]


@both_types
def test_columns_become_perpendicular_and_span_the_same(dtype):
    p = draw(2, dtype, 50, 4)
    q = p.copy()
    kernels.gram_schmidt(q, 1e-5)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=4 * eps)
    np.testing.assert_allclose(q @ (q.T @ p), p, atol=16 * eps)


@both_types
def test_columns_that_are_nearly_the_same_become_perpendicular_too(dtype):
    p = draw(3, dtype, 50, 2)
    p[:, 1] = p[:, 0] + dtype(1e-4) * p[:, 1]
    kernels.gram_schmidt(p, 1e-5)
    assert abs(p[:, 0] @ p[:, 1]) < 4 * np.finfo(dtype).eps


@both_types
def test_a_column_that_depends_on_others_becomes_zero(dtype):
    p = np.zeros((9, 3), dtype)
    p[4] = 0.3, 0.7, 0.1  # one row: every column points the same way
    kernels.gram_schmidt(p, 1e-5)
    assert p[4].tolist() == [1.0, 0.0, 0.0]
    alike = np.outer(draw(4, dtype, 9), [0.3, 0.7, 0.1]).astype(dtype)
    kernels.gram_schmidt(alike, 1e-5)
    assert np.linalg.norm(alike, axis=0) == pytest.approx([1, 0, 0])
    nothing = np.zeros((9, 3), dtype)
    kernels.gram_schmidt(nothing, 1e-5)
    assert not nothing.any()
    assert gram_schmidt.reference(nothing, 1e-5) is None and not nothing.any()
