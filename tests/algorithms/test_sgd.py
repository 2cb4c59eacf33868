import numpy as np
import pytest

from tests.training import Springs, train


def test_sgd_makes_the_steps_of_the_book():
    springs = Springs()
    train("sgd", springs, settings={"learning_rate": 0.1}, steps=4)
    assert np.ravel(springs.seen[0.0]) == pytest.approx([1, 0.9, 0.81, 0.729])


def test_several_workers_train_alone_and_rank_0_ships_its_own_model():
    together = train("sgd", Springs([3.0, -1.0]), 2, steps=5)
    alone = [train("sgd", Springs([centre]), steps=5).models[0] for centre in (3.0, -1.0)]
    assert np.array_equal(together.models, alone)
    assert np.array_equal(together.shipped, alone[0])
    assert not together.outcome.trace().traffic().any()
