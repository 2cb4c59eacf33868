import numpy as np
import pytest

import kernels


def test_delay_compensation_makes_the_step_of_the_book():
    w = np.array([0.5])
    kernels.delay_compensated(w, np.array([1.0]), np.array([1.0]), 0.1, 0.04)
    assert w[0] == pytest.approx(0.402, abs=1e-12)


def test_adaptive_delay_compensation_makes_the_step_of_the_book():
    w, s = np.array([0.5]), np.zeros(1)
    kernels.delay_compensated_adaptive(w, s, np.array([1.0]), np.array([1.0]), 0.1, 2.0, 0.95, 1e-7)
    assert s[0] == pytest.approx(0.05, abs=1e-12)
    assert w[0] == pytest.approx(0.8472131483, abs=1e-9)


def test_delay_compensation_is_sgd_without_a_delay_and_without_a_weight():
    rng = np.random.default_rng(0)
    w, g, other = rng.standard_normal((3, 100))
    sgd = w.copy()
    kernels.sgd(sgd, g, 0.1)
    for backup, lam in ((w.copy(), 0.7), (other, 0.0)):
        compensated = w.copy()
        kernels.delay_compensated(compensated, g, backup, 0.1, lam)
        assert np.array_equal(compensated, sgd)


def test_the_true_curvature_in_the_place_of_g_g_makes_an_old_gradient_fresh():
    rng = np.random.default_rng(1)
    h, old = rng.uniform(0.1, 2, 50), rng.standard_normal(50)
    w = old + 0.3 * rng.standard_normal(50)
    g = h * old
    for i in range(50):  # lam g g = h, coordinate by coordinate
        one = w[i : i + 1].copy()
        kernels.delay_compensated(one, g[i : i + 1], old[i : i + 1], 0.1, h[i] / g[i] ** 2)
        assert one[0] == pytest.approx(w[i] - 0.1 * h[i] * w[i], rel=1e-12)


def test_a_centre_that_has_not_moved_takes_the_whole_step_and_one_that_has_takes_less():
    w = np.array([1.0, 1.0])
    kernels.distance_scaled(w, np.array([1.0, 1.0]), np.array([1.0, 0.5]), 0.1)
    assert w[0] == 0.9
    assert w[1] == pytest.approx(1 - 0.1 * 0.285714, abs=1e-6)


def test_one_step_ahead_of_adam_is_its_next_step_if_gradients_do_not_change():
    w, g = np.random.default_rng(4).standard_normal((2, 50))
    m, v = np.zeros(50), np.zeros(50)
    for t in (1, 2, 3):
        kernels.adam(w, m, v, g, t, 0.1, 0.9, 0.999, 1e-8)
    one, two = np.empty(50), np.empty(50)
    kernels.adam_ahead(one, w, m, v, 3, 1, 0.1, 0.9, 0.999, 1e-8)
    kernels.adam_ahead(two, w, m, v, 3, 2, 0.1, 0.9, 0.999, 1e-8)
    for t, foreseen in ((4, one), (5, two)):
        kernels.adam(w, m, v, g, t, 0.1, 0.9, 0.999, 1e-8)
        assert np.allclose(w, foreseen, rtol=0, atol=1e-13)
