import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train


def reported(run):
    return np.array([row[4] for row in run.outcome.event_logs[0].reports])


def test_with_sgd_inside_it_is_nesterovs_block_momentum_seen_at_the_point_ahead():
    mu, rate = 0.8, 0.7
    chain, local = ScalarChain(x=np.linspace(0.6, 1.4, 24)), {"learning_rate": 0.1, "period": 3}
    own = local | {"update": "sgd", "outer_rate": rate, "outer_momentum": mu}
    block = local | {"form": "nesterov", "block_rate": rate, "block_momentum": mu}
    x = reported(train("diloco", chain, 4, own, steps=24))
    W = reported(train("bmuf", chain, 4, block, steps=24))
    D = np.diff(W, axis=0, prepend=chain.w[None])
    assert np.allclose(x, W + mu * D, rtol=1e-12, atol=0)


def test_it_makes_the_steps_of_the_book_at_the_point_ahead():
    settings = {"learning_rate": 0.1, "period": 2, "update": "sgd", "outer_rate": 1, "outer_momentum": 0.5}
    x = reported(train("diloco", Springs([1.0, 3.0], starts=[0.0]), 2, settings, steps=6))
    assert np.ravel(x) == pytest.approx([0.57, 1.07255, 1.45229825], abs=1e-12)


def test_adams_memory_survives_the_outer_step():
    springs, alone = Springs([-3.0]), Springs([-3.0])
    settings = {"learning_rate": 0.125, "period": 2, "outer_rate": 1, "outer_momentum": 0}
    train("diloco", springs, 1, settings, steps=30)
    train("diloco", alone, 1, settings | {"period": 100}, steps=30)
    assert np.ravel(springs.seen[-3.0]) == pytest.approx(np.ravel(alone.seen[-3.0]), rel=1e-12)


def test_weight_decay_takes_its_share_of_w_and_not_of_the_gradient():
    settings = {"learning_rate": 0.1, "period": 1, "outer_rate": 1, "outer_momentum": 0, "weight_decay": 0.5}
    x = reported(train("diloco", Springs([-5.0], starts=[2.0]), 1, settings, steps=1))
    assert x[0] == pytest.approx(2 * (1 - 0.1 * 0.5) - 0.1)  # Adam's first step is lr, whatever the gradient


@pytest.mark.parametrize("period", [4, 10])
def test_it_communicates_once_a_period(period):
    run = train("diloco", ScalarChain(), 2, {"period": period}, steps=20)
    assert run.outcome.trace().traffic().sum() == 20 / period * 2 * 3 * 8
