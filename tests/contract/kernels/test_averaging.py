"""Averaging: what a visit conserves, and what a mean may and may not depend on."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def draw(seed: int, dtype: type, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_visits_take_the_known_first_rounds_of_asynchronous_easgd():
    targets, rate, pull = (1.0, -1.0), 0.1, 0.2  # f_i(x) = (x - target_i)^2 / 2, worker 0 visits before worker 1
    replicas, centre, p = [np.full(1, 2.0), np.full(1, 2.0)], np.zeros(1), np.zeros(1)
    rounds = []
    for _ in range(2):
        for x, target in zip(replicas, targets, strict=True):
            g = x - target
            kernels.elastic(p, centre, x, pull)
            x -= p
            kernels.sgd(x, g, rate)
        rounds.append([replicas[0][0], replicas[1][0], centre[0]])
    assert rounds[0] == pytest.approx([1.5, 1.38, 0.72], abs=1e-12)
    assert rounds[1] == pytest.approx([1.294, 1.0412, 0.9768], abs=1e-12)


def test_visits_conserve_the_sum_of_centre_and_replicas():
    centre, p = draw(0, np.float64, 100), np.zeros(100)
    replicas = [draw(i, np.float64, 100) for i in range(1, 5)]
    before = centre + sum(replicas)
    for visit in range(40):
        x = replicas[visit % 4]
        kernels.elastic(p, centre, x, 0.3)
        x -= p
    np.testing.assert_allclose(centre + sum(replicas), before, atol=1e-13)


def test_a_visit_does_not_touch_the_replica_it_is_shown():
    x = draw(1, np.float32, 100)
    before = x.copy()
    kernels.elastic(np.zeros_like(x), np.zeros_like(x), x, 0.3)
    np.testing.assert_array_equal(x, before)


@both_types
def test_the_mean_of_one_vector_is_that_vector_bit_for_bit(dtype):
    rows, out = draw(1, dtype, 1, 257), np.zeros(257, dtype)
    kernels.mean(out, rows)
    np.testing.assert_array_equal(out, rows[0])


@both_types
def test_the_mean_of_two_equal_vectors_is_that_vector_bit_for_bit(dtype):
    rows, out = np.tile(draw(1, dtype, 257), (2, 1)), np.zeros(257, dtype)
    kernels.mean(out, rows)
    np.testing.assert_array_equal(out, rows[0])


def test_the_running_mean_with_one_over_t_is_the_arithmetic_mean():
    rows, z = draw(1, np.float64, 50, 257), draw(2, np.float64, 257)
    for t, row in enumerate(rows, 1):
        kernels.ema(z, row, 1 / t)
        np.testing.assert_allclose(z, rows[:t].mean(0), rtol=0, atol=1e-14)


def test_the_running_mean_with_a_constant_forgets_exponentially():
    rows, z = draw(1, np.float64, 20, 257), np.zeros(257)
    for row in rows:
        kernels.ema(z, row, 0.1)
    weights = 0.1 * 0.9 ** np.arange(19, -1, -1)
    np.testing.assert_allclose(z, weights @ rows, rtol=0, atol=1e-14)


def test_the_mean_adds_rows_from_the_first_to_the_last():
    rows = np.array([[1e8], [1.0], [-1e8], [1.0]], np.float32)  # 1e8 + 1 is 1e8 in float32: the order shows
    out = np.zeros(1, np.float32)
    kernels.mean(out, rows)
    assert out[0] == 0.25
    kernels.mean(out, rows[[0, 2, 1, 3]])
    assert out[0] == 0.5


@both_types
def test_adding_all_and_scaling_is_the_mean(dtype):
    rows, mean = draw(1, dtype, 8, 257), np.zeros(257, dtype)
    kernels.mean(mean, rows)
    total = rows[0].copy()
    for row in rows[1:]:
        kernels.add(total, row)
    kernels.scale(total, 1 / 8)
    np.testing.assert_array_equal(total, mean)  # to the bit: 8 is a power of two


@both_types
@pytest.mark.parametrize(
    "call",
    [
        lambda x: kernels.add(x, np.ones_like(x)),
        lambda x: kernels.scale(x, 0.5),
        lambda x: kernels.elastic(np.zeros_like(x), x, np.ones_like(x), 0.5),
        lambda x: kernels.mean(x, np.stack([x, np.ones_like(x)])),
        lambda x: kernels.ema(x, np.ones_like(x), 0.5),
    ],
    ids=["add", "scale", "elastic", "mean", "ema"],
)
def test_a_nan_stays_where_it_is_and_is_seen(call, dtype):
    x = draw(1, dtype, 257)
    x[100] = math.nan
    call(x)
    assert np.flatnonzero(np.isnan(x)).tolist() == [100]


def test_matrices_are_refused_by_kernels_of_vectors():
    x = np.ones((3, 4), np.float32)
    for call in (lambda: kernels.add(x, x.copy()), lambda: kernels.sgd(x, x.copy(), 0.1)):
        with pytest.raises(ValueError, match="must be vectors"):
            call()
    assert (x == 1).all()


def test_vectors_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="different lengths"):
        kernels.add(np.zeros(5), np.zeros(4))
    with pytest.raises(ValueError, match="different lengths"):
        kernels.elastic(np.zeros(5), np.zeros(5), np.zeros(4), 0.1)
    with pytest.raises(ValueError, match="different lengths"):
        kernels.mean(np.zeros(5), np.zeros((3, 4)))


@pytest.mark.parametrize(("form", "gain"), [((1.0, 0.0), 16), ((1.0, 15 / 16), 16), ((31 / 16, 0.0), 31)])
def test_under_a_constant_drift_the_block_filter_gains_the_number_of_workers(form, gain):
    start, model, step, drift = np.zeros(1), np.zeros(1), np.zeros(1), np.ones(1)
    for _ in range(400):
        before = float(model[0])
        kernels.block_momentum(start, model, step, drift, 15 / 16, 1.0, *form)
    assert model[0] - before == pytest.approx(gain, rel=1e-9)


def test_a_block_filter_without_momentum_takes_the_step_as_it_is():
    model, drift = draw(1, np.float64, 100), draw(2, np.float64, 100)
    expected = model + drift
    start = np.zeros(100)
    kernels.block_momentum(start, model, np.zeros(100), drift, 0.0, 1.0, 1.0, 0.0)
    np.testing.assert_array_equal(model, expected)
    np.testing.assert_array_equal(start, expected)


def test_a_displacement_and_its_addition_lead_from_one_vector_to_the_other():
    x, y, p = draw(1, np.float64, 100), draw(2, np.float64, 100), np.zeros(100)
    kernels.displacement(p, x, y, 1.0)
    kernels.add(y, p)
    np.testing.assert_allclose(y, x, atol=1e-15)


@both_types
def test_a_squared_norm_is_that_of_all_numbers_whatever_the_shape(dtype):
    x = draw(1, dtype, 7, 31)
    assert kernels.squared_norm(x) == pytest.approx(kernels.squared_norm(x.reshape(-1)), rel=1e-12)
    assert kernels.squared_norm(2 * x) == 4 * kernels.squared_norm(x)  # to the bit: 2 is a power of two
    assert kernels.squared_norm(np.full(4, 3, dtype)) == 36


def test_a_squared_norm_is_summed_in_float64():
    x = np.full(1 << 24, 1.0, np.float32)
    assert kernels.squared_norm(np.append(x, [np.float32(1), np.float32(1)])) == (1 << 24) + 2  # float32 ends at 2^24
