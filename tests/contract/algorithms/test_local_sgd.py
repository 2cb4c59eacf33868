import numpy as np
import pytest

from algorithms.algorithm import Shape
from algorithms.averaging import local_sgd
from tests.training import ScalarChain, Springs, train


def unequal(curvatures, period, centres=(1.0, 3.0)):
    """Where two workers settle, each with a bowl of its own."""
    springs = [Springs(list(centres), starts=[0.0], curvature=h) for h in curvatures]
    settings, steps = {"learning_rate": 0.1, "period": period}, 1000 if period > 10 else 500
    return float(train("local_sgd", springs.__getitem__, 2, settings, steps=steps).shipped[0])


@pytest.mark.parametrize(("period", "settled"), [(1, 4 / 3), (5, 1.380068), (50, 1.779836)])
def test_unequal_bowls_pull_the_fixed_point_away_from_the_optimum(period, settled):
    assert unequal((1.0, 0.2), period) == pytest.approx(settled, abs=1e-6)
    q = [1 - (1 - 0.1 * h) ** period for h in (1.0, 0.2)]
    assert unequal((1.0, 0.2), period) == pytest.approx((q[0] * 1 + q[1] * 3) / sum(q), rel=1e-9)


@pytest.mark.parametrize("period", [1, 5, 50])
def test_equally_curved_bowls_do_not(period):
    assert unequal((0.7, 0.7), period) == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("period", [2, 7, 20])
@pytest.mark.parametrize("workers", [2, 3])
def test_identical_workers_are_one_whatever_the_period(workers, period):
    alike = ScalarChain(x=np.full(8, 1.3))
    many = train("local_sgd", alike, workers, {"learning_rate": 0.1, "period": period}, steps=20)
    alone = train("sgd", alike, 1, {"learning_rate": 0.1}, steps=20)
    assert np.allclose(many.shipped, alone.shipped, rtol=1e-13, atol=0)


def test_it_averages_in_every_step_before_the_switch_and_every_period_after_it():
    chain = ScalarChain(x=np.linspace(1, 2, 24))  # 3 workers with batch 2: 4 steps an epoch
    run = train("local_sgd", chain, 3, {"period": 5, "switch": 1.75}, batch=2, steps=19)
    steps = [row[0] for row in run.outcome.event_logs[0].measures]
    assert steps == [0, 1, 2, 3, 4, 5, 6, 11, 16, 18]
    shape = Shape(chain.parameters, 3, 19, 2, per_epoch=4)
    moved = run.outcome.trace().traffic().sum() / 8
    assert (
        moved
        == local_sgd.ALGORITHM.elements_sent(shape, local_sgd.Settings(period=5, switch=1.75))
        == len(steps) * 4 * 3
    )


def test_the_spread_is_the_squared_distance_of_the_replicas_from_their_mean():
    springs = Springs([1.0, -2.0, 7.0], parameters=5)
    alone = np.array(train("sgd", springs, 3, {"learning_rate": 0.1}, steps=4).models)
    run = train("local_sgd", springs, 3, {"learning_rate": 0.1, "period": 4}, steps=8)
    spread = [event_log.measures[0][3] for event_log in run.outcome.event_logs]
    assert spread == pytest.approx(np.square(alone - alone.mean(0)).sum(1))


def test_replicas_are_identical_bit_for_bit_after_every_average():
    run = train("local_sgd", ScalarChain(dtype=np.float32), 4, {"period": 3, "update": "adam"}, batch=2, steps=7)
    assert all(np.array_equal(run.models[0], w) for w in run.models)
