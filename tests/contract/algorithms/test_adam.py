import numpy as np
import pytest

from tests.training import Springs, train


def course(steps, curvature=1.0, **settings):
    run = train("adam", Springs(curvature=curvature), settings={"learning_rate": 0.1} | settings, steps=steps)
    return np.ravel([row[4] for row in run.outcome.event_logs[0].reports])


def test_it_makes_the_steps_of_the_book():
    assert course(4) == pytest.approx([0.9, 0.80041223, 0.70158627, 0.60393906], abs=5e-9)


@pytest.mark.parametrize("curvature", [1e-3, 1.0, 1e3])
def test_the_first_step_is_as_long_as_the_rate_however_steep_the_bowl(curvature):
    assert course(1, curvature, eps=0) == pytest.approx([0.9], abs=1e-12)


def test_without_memory_every_step_is_as_long_as_the_rate():
    assert course(9, beta1=0, beta2=0, eps=0) == pytest.approx(1 - 0.1 * np.arange(1, 10), abs=1e-12)
