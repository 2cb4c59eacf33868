import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train


def test_it_makes_the_steps_of_the_book():
    run = train("adagrad", Springs(), settings={"learning_rate": 0.1}, steps=4)
    steps = np.ravel([row[4] for row in run.outcome.event_logs[0].reports])
    assert steps == pytest.approx([0.9, 0.83310353, 0.78045618, 0.73622313], abs=5e-9)


def test_without_eps_the_steepness_of_the_bowl_is_of_no_account():
    paths = [
        train("adagrad", Springs(curvature=curvature), settings={"eps": 0}, steps=30).models[0]
        for curvature in (1.0, 1024.0)
    ]
    assert np.array_equal(*paths)  # to the bit: 1024 is a power of two


def test_a_weight_without_gradients_stays_where_it_is_without_eps():
    chain = ScalarChain(w=(0.5, 0.0, 0.7, 2.0))  # the gradients of all weights but the second are zero
    run = train("adagrad", chain, settings={"eps": 0, "learning_rate": 0.125}, steps=1)
    assert np.array_equal(np.abs(run.shipped - chain.w), [0, 0.125, 0, 0])
