"""Rounding to 16 bits: that of NumPy's float16 and of torch's bfloat16, to the bit; stochastic rounding is unbiased."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from kernels.gpu import simulate_gpu
from kernels.vectors import round_to as module

BF16, FP16 = (8, -126), (11, -14)
formats = pytest.mark.parametrize("kind", [BF16, FP16], ids=["bf16", "fp16"])


def rounded(v: np.ndarray, kind: tuple, key: int = -1) -> np.ndarray:
    out = np.empty_like(v)
    kernels.round_to(out, v, *kind, key)
    return out


def codes(kind: tuple) -> np.ndarray:
    """Every number of the format, as float32."""
    every = np.arange(2**16, dtype=np.uint16)
    return every.view(np.float16).astype(np.float32) if kind == FP16 else (every.astype(np.uint32) << 16).view("f4")


def neighbourhoods(kind: tuple) -> np.ndarray:
    """Every number of the format, the middle between it and the next one, and what float32 has next to both."""
    exact = np.unique(codes(kind)[np.isfinite(codes(kind))])
    with np.errstate(over="ignore"):
        middles = ((exact[1:].astype(float) + exact[:-1]) / 2).astype(np.float32)
        points = np.concatenate([exact, middles])
        return np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)]).astype(np.float32)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


def test_to_nearest_it_is_numpys_float16_around_every_code():
    v = np.concatenate([neighbourhoods(FP16), np.float32([65504, 65519.99, 65520, 1e9, np.inf, -np.inf, 1e-45, -0.0])])
    with np.errstate(over="ignore", under="ignore"):
        expected = v.astype(np.float16).astype(np.float32)
    assert len(v) > 6 * 63_000 and same_bits(rounded(v, FP16), expected)


def test_to_nearest_it_is_torchs_bfloat16_around_every_code():
    torch = pytest.importorskip("torch")
    v = np.concatenate([neighbourhoods(BF16), np.float32([3.4e38, np.inf, -np.inf, 1e-45, -0.0])])
    expected = torch.from_numpy(v).to(torch.bfloat16).to(torch.float32).numpy()
    assert len(v) > 6 * 65_000 and same_bits(rounded(v, BF16), expected)


@formats
def test_numbers_of_the_format_stay_and_nan_stays_nan_whatever_the_key(kind):
    v = codes(kind)
    for key in (-1, 0, 7):
        out = rounded(v, kind, key)
        assert np.array_equal(out, v, equal_nan=True)


@formats
@pytest.mark.parametrize("scale", [1.0, 2.0**-14, 2.0**-25])
def test_stochastic_rounding_picks_a_neighbour_and_keeps_the_mean(kind, scale):
    v = (np.random.default_rng(1).uniform(0.4, 1.9, 40) * scale).astype(np.float32)
    draws = np.array([rounded(v, kind, key) for key in range(4000)], float)
    for x, one in zip(v.astype(float), draws.T, strict=True):
        values = np.unique(one)
        assert len(values) <= 2 and values.min() <= x <= max(values.max(), x)
        spread = np.ptp(values) or abs(x) * 2.0 ** -kind[0]
        assert abs(one.mean() - x) < 4.5 * spread / 2 / np.sqrt(len(one))


def test_rounding_to_nearest_loses_what_stochastic_rounding_keeps_on_average():
    one = np.ones(20_000, np.float32)
    small = one + np.float32(2**-10)  # an eighth of bfloat16's spacing at 1
    assert (rounded(small, BF16) == 1).all()
    assert rounded(small, BF16, 3).mean() == pytest.approx(1 + 2**-10, abs=1e-4)


@formats
def test_all_implementations_give_the_same_bits_stochastically_too(kind):
    rng = np.random.default_rng(2)
    v = (rng.standard_normal(700) * 10.0 ** rng.integers(-12, 6, 700)).astype(np.float32)
    v[:3] = np.inf, -1e-45, 65519
    for key in (-1, 5):
        results = []
        for implementation in (module.reference, module.cpu, module.gpu):
            out, some = np.empty_like(v), v.copy()
            with simulate_gpu():
                implementation(out, some, *kind, key)
            results.append(out)
        assert same_bits(*results[:2]) and same_bits(*results[1:])


def test_it_can_round_in_place_and_costs_a_long_and_a_short_number():
    v = np.float32([1 + 2**-10, 3.0])
    kernels.round_to(v, v, *BF16, -1)
    assert v.tolist() == [1.0, 3.0]
    assert kernels.round_to.price(v, v, *BF16, -1) == (10, 3.0)  # words of four bytes: 6 bytes a number
