import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train


def test_it_makes_the_steps_of_the_book():
    springs = Springs()
    run = train("momentum", springs, settings={"learning_rate": 0.1}, steps=4)
    assert np.ravel(springs.seen[0.0]) == pytest.approx([1, 0.9, 0.72, 0.486], abs=1e-12)
    assert run.models[0] == pytest.approx([0.2268], abs=1e-12)


def test_without_momentum_it_is_sgd_bit_for_bit_in_float32_too():
    runs = (
        train(name, ScalarChain(dtype=np.float32), settings={"learning_rate": 0.1, **more}, batch=2, steps=30)
        for name, more in (("momentum", {"momentum": 0}), ("sgd", {}))
    )
    mine, plain = (run.models[0] for run in runs)
    assert np.array_equal(mine, plain)


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
def test_momentum_widens_the_critical_rate_by_one_plus_mu(mu, share, settles):
    settings = {"learning_rate": share * 2 * (1 + mu), "momentum": mu}
    w = np.abs(
        [row[4][0] for row in train("momentum", Springs(), settings=settings, steps=800).outcome.event_logs[0].reports]
    )
    assert (w[-50:].max() < 0.5 * w[:50].max()) == settles
    assert (w[-50:].max() > 2 * w[:50].max()) != settles


@pytest.mark.parametrize("correct", [True, False])
def test_caffes_form_is_the_same_when_the_rate_changes_only_if_its_velocity_is_corrected(correct):
    rates, mu = [0.05] * 5 + [0.2] * 5 + [0.01] * 5, 0.9  # on f(w) = w^2 / 2
    w, v = 1.0, 0.0
    x, u, before = 1.0, 0.0, rates[0]
    apart = []
    for rate in rates:
        v = mu * v + w
        w -= rate * v
        if correct:
            u *= rate / before
        u = mu * u - rate * x
        x, before = x + u, rate
        apart.append(abs(x - w))
    assert max(apart[:5]) < 1e-15
    assert (max(apart) < 1e-14) == correct
