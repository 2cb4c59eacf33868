import numpy as np
import pytest

from tests.training import Springs, noisy_bowl, train


def test_sgd_makes_the_steps_of_the_book():
    springs = Springs()
    train("sgd", springs, settings={"learning_rate": 0.1}, steps=4)
    assert np.ravel(springs.seen[0.0]) == pytest.approx([1, 0.9, 0.81, 0.729])


@pytest.mark.parametrize(("rate", "batch"), [(0.2, 1), (0.5, 1), (1.5, 1), (0.2, 4)])
def test_noise_keeps_the_model_as_far_from_the_optimum_as_the_formula_says(rate, batch):
    run = train("sgd", noisy_bowl(300 * batch), settings={"learning_rate": rate}, batch=batch, steps=300)
    late = np.array([row[4] for row in run.outcome.event_logs[0].reports[100:]])
    assert np.square(late).mean() == pytest.approx(rate / batch / (2 - rate), rel=0.05)


@pytest.mark.parametrize(("share", "settles"), [(0.98, True), (1.02, False)])
@pytest.mark.parametrize("curvature", [0.5, 4.0])
def test_the_critical_rate_is_two_over_the_curvature(curvature, share, settles):
    springs = Springs(curvature=curvature)
    w = train("sgd", springs, settings={"learning_rate": share * 2 / curvature}, steps=200).models[0]
    assert (abs(w[0]) < 0.1) == settles
    assert (abs(w[0]) > 10) != settles
