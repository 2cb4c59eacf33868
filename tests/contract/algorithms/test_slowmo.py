import numpy as np
import pytest

from tests.training import Springs, train


def reported(run):
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.5), (0.7, 0.8), (1.5, 0.0)])
def test_it_takes_the_steps_of_the_algorithm_as_it_is_printed(alpha, beta):
    forces, rate = np.array([1.0, 3.0, -7.0]), 0.1
    x, u, expected = 2.0, 0.0, []
    for _ in range(6):
        w = forces + (x - forces) * (1 - rate) ** 4  # four local steps of each
        u = beta * u + (x - w.mean()) / rate
        x = x - alpha * rate * u
        expected.append(x)
    settings = {"learning_rate": rate, "period": 4, "slow_rate": alpha, "slow_momentum": beta}
    assert reported(train("slowmo", Springs(forces, starts=[2.0]), 3, settings, steps=24)) == pytest.approx(expected)


def test_a_rest_of_the_last_period_counts_as_a_period():
    settings = {"learning_rate": 0.1, "period": 4, "slow_momentum": 0.5}
    x = reported(train("slowmo", Springs([0.0] * 2), 2, settings, steps=5))
    first = 0.9**4
    assert x == pytest.approx([first, first * 0.9 - 0.5 * (1 - first)])
