import numpy as np
import pytest

from tests.training import ScalarChain, noisy_bowl, train


def reports(run):
    return np.array([row[4] for row in run.outcome.event_logs[0].reports])  # (steps, d)


def courses(steps=60, **settings):
    """What it ships after each step, and the models of SGD, which has the same rate."""
    where = {"batch": 2, "steps": steps}
    mine = train("polyak", ScalarChain(), settings={"learning_rate": 0.1} | settings, **where)
    return reports(mine), reports(train("sgd", ScalarChain(), settings={"learning_rate": 0.1}, **where))


@pytest.mark.parametrize("after", [0, 20])
def test_the_recursion_is_the_arithmetic_mean_since_averaging_began(after):
    z, w = courses(after=after)
    for t in range(after, 60):
        assert z[t] == pytest.approx(w[after : t + 1].mean(0), rel=1e-13)


def test_until_averaging_begins_it_ships_the_model_itself():
    z, w = courses(after=20)
    assert z[:20] == pytest.approx(w[:20], rel=1e-14)
    assert np.abs(z[-1] - w[-1]).max() > 1e-3


def test_an_exponential_average_forgets_older_models_exponentially():
    z, w = courses(average="exponential", weight=0.1, after=0)
    before = ScalarChain().w  # the average begins at the first parameters
    weights = 0.1 * 0.9 ** np.arange(59, -1, -1)
    assert z[-1] == pytest.approx(weights @ w + 0.9**60 * before, rel=1e-13)


def test_the_average_is_never_fed_back():
    runs = [
        train("polyak", ScalarChain(), settings={"after": after}, batch=2, steps=30).outcome.event_logs[0].losses
        for after in (0, 7, 1000)
    ]
    losses = [[row[3] for row in rows] for rows in runs]
    assert losses[0] == losses[1] == losses[2]


def test_the_rate_falls_as_a_power_of_the_step():
    steps = [
        reports(train("polyak", ScalarChain(), settings={"decay": q, "after": 10, "learning_rate": 0.1}, steps=2))
        for q in (0.0, 0.75)
    ]
    first, second = (np.diff([ScalarChain().w, *w], axis=0) for w in steps)
    assert np.array_equal(first[0], second[0])
    assert second[1] == pytest.approx(first[1] * 2**-0.75, rel=1e-12)


@pytest.mark.parametrize("rate", [0.1, 0.3, 1.0])
def test_the_variance_of_the_average_falls_with_time_and_knows_nothing_of_the_rate(rate):
    steps = 1000
    z = train("polyak", noisy_bowl(steps, 2000), settings={"learning_rate": rate, "after": 0}, steps=steps).models[0]
    assert np.square(z).mean() * steps == pytest.approx(1, rel=0.1)  # noise^2 / curvature^2
