"""Update rules: their first steps on f(w) = w^2 / 2 from w = 1, where g = w, and what they become in limit cases."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def descend(step, steps: int = 4) -> list[float]:
    """The iterates of `step(w, g)` from w = 1."""
    w, seen = np.ones(1), []
    for _ in range(steps):
        step(w, w.copy())
        seen.append(w[0])
    return seen


def draw(seed: int, dtype: type, n: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


def test_sgd_shrinks_by_a_tenth_each_step():
    assert descend(lambda w, g: kernels.sgd(w, g, 0.1)) == pytest.approx([0.9, 0.81, 0.729, 0.6561], abs=1e-15)


def test_momentum_takes_the_known_first_steps():
    v = np.zeros(1)
    seen = descend(lambda w, g: kernels.momentum(w, v, g, 0.1, 0.9))
    assert seen == pytest.approx([0.9, 0.72, 0.486, 0.2268], abs=1e-12)


def test_nesterov_takes_the_known_first_steps():
    v = np.zeros(1)
    seen = descend(lambda w, g: kernels.nesterov(w, v, g, 0.1, 0.9))
    assert seen == pytest.approx([0.81, 0.5751, 0.327321, 0.09388791], abs=1e-12)


def test_adagrad_takes_the_known_first_steps():
    s = np.zeros(1)
    seen = descend(lambda w, g: kernels.adagrad(w, s, g, 0.1, 0.0))
    assert seen == pytest.approx([0.9, 0.83310353, 0.78045618, 0.73622313], abs=5e-9)


def test_adam_takes_the_known_first_steps():
    m, v, t = np.zeros(1), np.zeros(1), iter(range(1, 9))
    seen = descend(lambda w, g: kernels.adam(w, m, v, g, next(t), 0.1, 0.9, 0.999, 1e-8))
    assert seen == pytest.approx([0.9, 0.80041223, 0.70158627, 0.60393906], abs=5e-9)


@both_types
def test_momentum_without_momentum_is_sgd_bit_for_bit(dtype):
    w, v = draw(1, dtype), np.zeros(1000, dtype)
    expected = w.copy()
    for step in range(10):
        g = draw(2 + step, dtype)
        kernels.momentum(w, v, g, 0.1, 0.0)
        kernels.sgd(expected, g, 0.1)
    np.testing.assert_array_equal(w, expected)


@both_types
def test_nesterov_without_momentum_is_sgd_bit_for_bit(dtype):
    w, v = draw(1, dtype), np.zeros(1000, dtype)
    expected = w.copy()
    for step in range(10):
        g = draw(2 + step, dtype)
        kernels.nesterov(w, v, g, 0.1, 0.0)
        kernels.sgd(expected, g, 0.1)
    np.testing.assert_array_equal(w, expected)


@both_types
def test_sgd_is_the_numpy_expression_bit_for_bit(dtype):
    w, g = draw(1, dtype), draw(2, dtype)
    expected = w - dtype(0.1) * g
    kernels.sgd(w, g, 0.1)
    np.testing.assert_array_equal(w, expected)


def test_sutskevers_form_takes_the_known_first_steps_of_both_its_points():
    x, u, behind = np.ones(1), np.zeros(1), []

    def step(y, g):
        kernels.sutskever(y, x, u, g, 0.1, 0.9)
        behind.append(x[0])

    assert descend(step) == pytest.approx([0.81, 0.5751, 0.327321, 0.09388791], abs=1e-12)
    assert behind == pytest.approx([0.9, 0.729, 0.51759, 0.2945889], abs=1e-12)


@both_types
def test_the_two_forms_of_nesterov_are_one_algorithm_seen_at_two_points(dtype):
    rate, mu, close = 0.1, 0.9, 200 * np.finfo(dtype).eps
    w, v = draw(1, dtype), np.zeros(1000, dtype)
    y, x, u = w.copy(), w.copy(), v.copy()
    for step in range(20):
        g = draw(2 + step, dtype)
        kernels.nesterov(w, v, g, rate, mu)
        kernels.sutskever(y, x, u, g, rate, mu)
        np.testing.assert_allclose(y, w, atol=close)
        np.testing.assert_allclose(x, w + rate * mu * v, atol=close)
        np.testing.assert_allclose(u, -rate * v, atol=close)


@both_types
def test_rmsprop_blended_wholly_into_momentum_is_momentum_bit_for_bit(dtype):
    w, D, m = draw(1, dtype), np.zeros(1000, dtype), np.zeros(1000, dtype)
    expected, v = w.copy(), D.copy()
    for step in range(10):
        g = draw(2 + step, dtype)
        kernels.rmsprop_blend(w, D, m, g, 0.1, 0.9, 0.99, 1.0, 0.0, 1e-8)
        kernels.momentum(expected, v, g, 0.1, 0.9)
    np.testing.assert_array_equal(w, expected)
    np.testing.assert_array_equal(D, -v)


@both_types
@pytest.mark.parametrize("mu", [0.0, 0.9])
def test_rmsprop_blended_not_at_all_is_rmsprop_with_momentum_at_its_own_rate(mu, dtype):
    rate, own, close = 0.5, 0.003, 200 * np.finfo(dtype).eps
    w, D, m = draw(1, dtype), np.zeros(1000, dtype), np.zeros(1000, dtype)
    start, s, expected = w.copy(), m.copy(), w.copy()
    velocity = np.zeros(1000, dtype)
    for step in range(10):
        g = draw(2 + step, dtype)
        kernels.rmsprop_blend(w, D, m, g, rate, mu, 0.99, 0.0, own / rate, 1e-8)
        moved = np.zeros(1000, dtype)
        kernels.rmsprop(moved, s, g, own, 0.99, 1e-8)
        velocity = mu * velocity + moved
        expected += velocity
        np.testing.assert_allclose(w, expected, atol=close)
    assert np.abs(w - start).min() > 0


def test_rmsprop_takes_the_known_first_steps():
    s = np.zeros(1)
    seen = descend(lambda w, g: kernels.rmsprop(w, s, g, 0.01, 0.99, 1e-8))
    assert seen == pytest.approx([0.90000001, 0.83291798, 0.77998228, 0.73538905], abs=5e-9)


@both_types
def test_eps_of_rmsprop_stands_outside_or_inside_the_root(dtype):
    steps = {}
    for where, (outside, inside) in {"outside": (1.0, 0.0), "inside": (0.0, 1.0), "neither": (0.0, 0.0)}.items():
        w, s = np.zeros(1, dtype), np.zeros(1, dtype)
        kernels.rmsprop(w, s, np.full(1, 10.0, dtype), 1.0, 0.91, outside, inside)
        steps[where] = -w[0]  # s is 9
    assert steps == pytest.approx({"outside": 10 / 4, "inside": 10 / math.sqrt(10), "neither": 10 / 3}, rel=1e-6)


def test_adagrad_without_eps_first_moves_every_coordinate_by_the_learning_rate():
    w, s = np.zeros(5), np.zeros(5)
    kernels.adagrad(w, s, np.array([3.0, -3.0, 1e-9, 1e9, 0.0]), 0.1, 0.0)
    np.testing.assert_allclose(w, [-0.1, 0.1, -0.1, -0.1, 0.0], rtol=1e-15)


@both_types
def test_adagrad_without_eps_leaves_a_coordinate_without_gradients_where_it_is(dtype):
    w, s = np.array([2.0], dtype), np.zeros(1, dtype)
    kernels.adagrad(w, s, np.zeros(1, dtype), 0.1, 0.0)
    assert w[0] == 2.0


@both_types
def test_adam_first_moves_every_coordinate_by_nearly_the_learning_rate(dtype):
    w, m, v = (np.zeros(1000, dtype) for _ in range(3))
    g = draw(1, dtype)
    kernels.adam(w, m, v, g, 1, 0.1, 0.9, 0.999, 0.0)
    np.testing.assert_allclose(w, -0.1 * np.sign(g), rtol=1e-6)


@both_types
def test_dividing_zero_by_zero_gives_nan_as_numpy_does_and_no_exception(dtype):
    w, m, v = (np.zeros(3, dtype) for _ in range(3))
    kernels.adam(w, m, v, np.zeros(3, dtype), 1, 0.1, 0.9, 0.999, 0.0)
    assert np.isnan(w).all()


def run(name: str, w: np.ndarray, g: np.ndarray) -> None:
    """One step of any rule from empty state."""
    states, scalars = {
        "sgd": (0, (0.1,)),
        "sign_sgd": (0, (0.1,)),
        "momentum": (1, (0.1, 0.9)),
        "nesterov": (1, (0.1, 0.9)),
        "sutskever": (2, (0.1, 0.9)),
        "adagrad": (1, (0.1, 0.0)),
        "rmsprop": (1, (0.1, 0.9, 1e-8)),
        "rmsprop_blend": (2, (0.1, 0.9, 0.9, 0.5, 0.1, 1e-8)),
        "adam": (2, (1, 0.1, 0.9, 0.999, 1e-8)),
    }[name]
    getattr(kernels, name)(w, *(np.zeros_like(w) for _ in range(states)), g, *scalars)


each_rule = pytest.mark.parametrize("name", kernels.FAMILIES["updates"])


@each_rule
@both_types
def test_a_nan_stays_where_it_is_and_is_seen(name, dtype):
    w, g = draw(1, dtype, 257), draw(2, dtype, 257)
    g[100] = math.nan
    run(name, w, g)
    assert np.flatnonzero(np.isnan(w)).tolist() == [100]


@each_rule
@both_types
def test_an_infinite_gradient_does_not_pass_for_a_finite_step(name, dtype):
    w, g = draw(1, dtype, 257), draw(2, dtype, 257)
    g[100] = math.inf
    run(name, w, g)
    assert np.flatnonzero(~np.isfinite(w)).tolist() == [100]


@each_rule
def test_a_gradient_of_another_length_is_refused(name):
    with pytest.raises(ValueError, match="different lengths"):
        run(name, np.zeros(5), np.zeros(4))
