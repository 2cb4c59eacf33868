import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train


def course(form, steps=4, workload=None, **settings):
    """(points at which gradients were asked for, points that were shipped)."""
    springs = workload or Springs()
    run = train("nesterov", springs, settings={"learning_rate": 0.1, "form": form} | settings, steps=steps)
    return np.ravel(springs.seen[0.0]), np.ravel([row[4] for row in run.outcome.event_logs[0].reports])


def test_pytorchs_form_makes_the_steps_of_the_book():
    looked, shipped = course("pytorch")
    assert shipped == pytest.approx([0.81, 0.5751, 0.327321, 0.09388791], abs=1e-12)
    assert looked == pytest.approx([1, *shipped[:-1]], abs=0)


def test_sutskevers_form_makes_the_steps_of_the_book_at_both_points():
    looked, shipped = course("sutskever", steps=5)
    assert shipped[:4] == pytest.approx([0.9, 0.729, 0.51759, 0.2945889], abs=1e-12)
    assert looked == pytest.approx([1, 0.81, 0.5751, 0.327321, 0.09388791], abs=1e-12)


@pytest.mark.parametrize("mu", [0.0, 0.5, 0.99])
def test_the_two_forms_are_one_algorithm_seen_at_two_points(mu):
    looked, shipped = course("pytorch", steps=60, momentum=mu)
    ahead, behind = course("sutskever", steps=60, momentum=mu)
    assert ahead == pytest.approx(looked, abs=1e-13)
    assert behind == pytest.approx(shipped, abs=1e-13) if mu == 0 else np.abs(behind - shipped).max() > 0.01


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("form", ["pytorch", "sutskever"])
def test_looking_ahead_narrows_the_critical_rate_to_two_times_one_plus_mu_over_one_plus_two_mu(form, share, settles):
    mu = 0.9
    _, w = np.abs(course(form, steps=800, learning_rate=share * 2 * (1 + mu) / (1 + 2 * mu), momentum=mu))
    assert (w[-50:].max() < 0.5 * w[:50].max()) == settles
    assert (w[-50:].max() > 2 * w[:50].max()) != settles


@pytest.mark.parametrize("form", ["pytorch", "sutskever"])
def test_without_momentum_it_is_sgd_bit_for_bit_in_float32_too(form):
    chain = {"batch": 2, "steps": 30}
    mine = train("nesterov", ScalarChain(dtype=np.float32), settings={"momentum": 0, "form": form}, **chain)
    plain = train("sgd", ScalarChain(dtype=np.float32), settings={"learning_rate": 0.05}, **chain)
    assert np.array_equal(mine.models[0], plain.models[0])
