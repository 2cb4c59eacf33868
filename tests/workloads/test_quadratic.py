"""Quadratic: the optimum is where it is said to be, and the books' own two problems are among them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels
from workloads import quadratic
from workloads.quadratic import Quadratic


def everything(problem):
    return problem.batch(np.arange(problem.samples))


def test_the_first_problem_of_the_book_is_w_squared_over_two():
    problem = Quadratic([[0.0]], [1.0], [1.0])
    w = problem.start()
    seen = []
    for _ in range(4):
        loss, g = problem.gradient(w, everything(problem))
        assert loss == w[0] ** 2 / 2
        kernels.sgd(w, g, 0.1)
        seen.append(w[0])
    np.testing.assert_allclose(seen, [0.9, 0.81, 0.729, 0.6561], rtol=1e-15)


def test_in_the_second_problem_every_worker_has_a_centre_of_its_own():
    problem = Quadratic([[1.0], [-1.0]], [1.0], [2.0], shuffle=False)
    from workloads.batches import Batches

    gradients = []
    for worker in range(2):
        batch = problem.batch(next(Batches(problem.samples, 1, worker, 2, shuffle=problem.shuffle)))
        gradients.append(problem.gradient(problem.start(), batch)[1][0])
    assert gradients == [1, 3]
    assert problem.optimum[0] == 0


@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_the_optimum_is_known(noise):
    problem = quadratic.build(quadratic.Settings(noise=noise, points=512), np.float64)
    _, g = problem.gradient(problem.optimum, everything(problem))
    np.testing.assert_allclose(g, 0, atol=1e-14)
    np.testing.assert_allclose(problem.optimum, 0, atol=1e-14)
    assert problem.evaluate(problem.optimum).loss == 0
    assert problem.evaluate(problem.start()).loss > 0


def test_evaluation_is_the_height_above_the_optimum():
    problem = quadratic.build(quadratic.Settings(noise=1.0, points=512), np.float64)
    w = problem.start()
    there, _ = problem.gradient(w, everything(problem))
    floor, _ = problem.gradient(problem.optimum, everything(problem))
    assert problem.evaluate(w).loss == pytest.approx(there - floor, rel=1e-12)
    assert math.isnan(problem.evaluate(w).accuracy)


def test_without_noise_every_batch_has_the_same_gradient():
    problem = quadratic.build(quadratic.Settings(), np.float64)
    w = problem.start()
    for size in (1, 3, 32):
        _, g = problem.gradient(w, problem.batch(np.arange(size)))
        np.testing.assert_array_equal(g, problem.curvature * w)


def test_noise_scatters_gradients_by_as_much_as_asked_for():
    problem = quadratic.build(quadratic.Settings(noise=0.5, points=20000, dimension=3, condition=1), np.float64)
    single = [problem.gradient(problem.start(), problem.batch(np.array([j])))[1] for j in range(2000)]
    np.testing.assert_allclose(np.std(single, axis=0), 0.5, rtol=0.05)


def test_the_condition_is_the_ratio_of_curvatures():
    curvature = quadratic.build(quadratic.Settings(condition=100, dimension=7), np.float64).curvature
    assert curvature.max() == 1
    assert curvature.max() / curvature.min() == pytest.approx(100)


def test_a_bowl_cannot_be_cut_in_stages():
    with pytest.raises(ValueError, match=r"^a quadratic has no layers to cut in stages; use digits"):
        quadratic.build(quadratic.Settings()).split(2)


def test_points_that_would_fill_the_memory_are_refused():
    with pytest.raises(ValueError, match="use at most 10 points"):
        quadratic.build(quadratic.Settings(dimension=10_000_000, points=10_000_000))
