"""EF21: numbers of an independent program, and the convergence that its paper proves, on quadratics."""

import numpy as np
import pytest

from algorithms.compression import attach, find
from cluster import simulated
from tests.contract.compression.meetings import draw, layout, meet

KINDS = np.geomspace(1, 1 / 5, 4)[:, None] * np.geomspace(1, 1 / 10, 10)  # curvatures of four ranks, (4, 10)
CENTRES = np.repeat([[-3.0], [-1.0], [1.0], [3.0]], 10, axis=1)
OPTIMUM = (KINDS * CENTRES).sum(0) / KINDS.sum(0)


def largest(v, k):
    """`v` with all but its k largest elements set to 0."""
    out = np.zeros_like(v)
    keep = np.argsort(-np.abs(v), kind="stable")[:k]
    out[keep] = v[keep]
    return out


def descend(name, steps, rate, **settings):
    """The points of gradient descent on the mean of the four quadratics, from 0: (steps + 1, 10)."""

    def program(comm):
        one = attach(comm, find(name), find(name).Settings(**settings), layout((10,)), 0)
        w, points = np.zeros(10), [np.zeros(10)]
        for _ in range(steps):
            w -= rate * one.all_reduce(KINDS[comm.rank] * (w - CENTRES[comm.rank]), op="mean")
            points.append(w.copy())
        return points

    outcome = simulated.run(program, 4)
    if outcome.error:
        raise outcome.error
    return np.array(outcome.results[0])


def excess(points):
    """The loss of the mean above that of the optimum, of each point."""
    return np.square(points - OPTIMUM) @ KINDS.mean(0) / 2


def test_all_apply_the_mean_of_beliefs_as_an_independent_program_has_them():
    given = np.array([[draw(100 * rank + step, 12) for step in range(6)] for rank in range(3)])
    believed, means = np.zeros((3, 12)), []
    for step in range(6):
        believed += [largest(given[rank, step] - believed[rank], 3) for rank in range(3)]
        means.append(believed.mean(0))
    met = meet("ef21", given, layout((12,)), density=0.25)
    np.testing.assert_allclose(met.means, means, rtol=0, atol=1e-12)
    assert met.sent.tolist() == [6 * 2 * 3 * (8 + 4)] * 3  # to two others: three float64 and their indices


def test_once_a_gradient_stays_as_it_is_beliefs_are_exact_after_d_over_k_steps():
    given = np.repeat(draw(7, 2 * 12).reshape(2, 1, 12), 5, axis=1)
    means = meet("ef21", given, layout((12,)), density=0.25).means
    wrong = [np.abs(mean - given[:, 0].mean(0)).max() for mean in means]
    assert wrong[2] > 0.01 and max(wrong[3:]) < 1e-12


@pytest.mark.parametrize("k", [1, 2, 5])
def test_on_unlike_quadratics_it_converges_at_least_as_fast_as_its_theorem_says(k):
    # With theta = 1 - sqrt(1 - k/d), beta = (1 - k/d) / theta and a rate of at most theta / 2 mu and
    # 1 / (L + L' sqrt(2 beta / theta)), f - f* + rate / theta * mean |b - g|^2 shrinks by 1 - rate mu in every step.
    smooth, strong = KINDS.mean(0).max(), KINDS.mean(0).min()
    mean_square = np.sqrt(np.square(KINDS.max(1)).mean())
    theta = 1 - np.sqrt(1 - k / 10)
    rate = min(1 / (smooth + mean_square * np.sqrt(2 * (1 - k / 10)) / theta), theta / (2 * strong))
    steps = 400
    points = descend("ef21", steps, rate, density=k / 10)
    gradients = KINDS * (0 - CENTRES)
    believed = np.array([largest(g, k) for g in gradients])
    first = excess(points[0]) + rate / theta * np.square(believed - gradients).sum(1).mean()
    bound = first * (1 - rate * strong) ** np.arange(steps + 1)
    assert (excess(points) <= bound).all()
    assert excess(points[-1]) < 0.1 * excess(points[0])


def test_top_k_alone_sticks_error_feedback_has_a_floor_and_ef21_neither():
    alone, owed, differences = (
        excess(descend(name, 800, 0.4, density=0.1, **settings))
        for name, settings in (("top_k", {"error_feedback": False}), ("top_k", {}), ("ef21", {}))
    )
    assert alone[400] > 0.3 * alone[0] and alone[800] > 0.99 * alone[400]
    assert 0.01 < min(owed[400:]) < 0.2 and differences[400] < 1e-8 and differences[800] < 1e-15


def test_the_floor_of_error_feedback_falls_with_the_rate():
    floors = [excess(descend("top_k", round(160 / rate), rate, density=0.1))[-200:].mean() for rate in (0.4, 0.1)]
    assert floors[0] > 8 * floors[1] > 0
