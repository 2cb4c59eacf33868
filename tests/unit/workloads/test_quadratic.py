"""Quadratic: the optimum is where it is said to be, and the books' own two problems are among them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels
from workloads import quadratic
from workloads.batches import Batches
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
    for stages in (2, (1, 1)):
        with pytest.raises(ValueError, match=r"^quadratic .*no layers.*digits"):
            quadratic.build(quadratic.Settings()).split(stages)


def test_points_that_would_fill_the_memory_are_refused():
    with pytest.raises(ValueError, match="use at most 10 points"):
        quadratic.build(quadratic.Settings(dimension=10_000_000, points=10_000_000))


# several kinds of samples


def shards(problem, workers, batch, rounds=3):
    """(points, curvature) of the first batches of every worker."""
    streams = [Batches(problem.samples, batch, i, workers, shuffle=problem.shuffle) for i in range(workers)]
    return [[problem.batch(next(stream)) for _ in range(rounds)] for stream in streams]


def test_every_worker_sees_one_kind_with_its_centre_and_curvature():
    settings = quadratic.Settings(kinds=3, apart=2.0, unequal=4.0, stretch=5, points=100, dimension=2, condition=10)
    problem = quadratic.build(settings, np.float64)
    for batches, centre, scale in zip(shards(problem, 3, 5), (-2, 0, 2), (1, 0.5, 0.25), strict=True):
        for points, curvature in batches:
            np.testing.assert_array_equal(points, np.full((5, 2), centre))
            np.testing.assert_allclose(curvature, [scale, scale / 10])


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_optimum_of_all_kinds_together_is_where_their_gradients_cancel(noise):
    settings = quadratic.Settings(kinds=3, apart=2.0, unequal=4.0, stretch=5, points=100, noise=noise)
    problem = quadratic.build(settings, np.float64)
    assert problem.samples == 90  # whole rounds of all kinds
    everybody = [problem.batch(first + np.arange(5)) for first in range(0, 90, 5)]
    losses, gradients = zip(*(problem.gradient(problem.optimum, batch) for batch in everybody), strict=True)
    np.testing.assert_allclose(np.mean(gradients, axis=0), 0, atol=1e-14)
    start = [problem.gradient(problem.start(), batch)[0] for batch in everybody]
    assert problem.evaluate(problem.start()).loss == pytest.approx(np.mean(start) - np.mean(losses))


def test_one_kind_is_the_problem_as_it_was():
    one = quadratic.build(quadratic.Settings(noise=1.0), np.float64)
    assert one.shuffle and type(one) is Quadratic


def test_a_batch_that_would_mix_kinds_is_refused():
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment

    values = {"workload": "quadratic", "kinds": 2, "batch": 64, "workers": 2}
    with pytest.raises(ValueError, match=r"batch is 64, but .* 32 samples; use batch 32, or stretch 64\.$"):
        run(Experiment.of(values))
    with pytest.raises(ValueError, match=r"use at least 200 points\.$"):
        quadratic.build(quadratic.Settings(kinds=4, stretch=50, points=199))
