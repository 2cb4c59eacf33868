import numpy as np
import pytest

from tests.training import Springs, train


def course(steps, **settings):
    run = train("rmsprop", Springs(), settings=settings, steps=steps)
    return np.ravel([row[4] for row in run.outcome.event_logs[0].reports])


def test_it_makes_the_steps_of_the_book():
    assert course(4, learning_rate=0.01) == pytest.approx([0.90000001, 0.83291798, 0.77998228, 0.73538905], abs=5e-9)


@pytest.mark.parametrize("rate", [0.01, 0.002])
def test_it_does_not_come_to_rest_but_jumps_over_the_optimum_at_half_a_step(rate):
    late = course(4000, learning_rate=rate)[-20:]
    assert np.abs(late) == pytest.approx(np.full(20, rate / 2), rel=0.05)
    assert (late[1:] * late[:-1] < 0).all()


def test_eps_inside_the_root_is_another_rule_where_it_is_not_tiny():
    g, s = 1.0, 0.01  # the first step: s = (1 - a) g^2
    inside, outside = (course(1, learning_rate=0.1, eps=1.0, eps_inside=there)[0] for there in (True, False))
    assert inside == pytest.approx(1 - 0.1 * g / np.sqrt(s + 1), abs=1e-12)
    assert outside == pytest.approx(1 - 0.1 * g / (np.sqrt(s) + 1), abs=1e-12)
