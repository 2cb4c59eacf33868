import numpy as np
import pytest

from algorithms.parts.lr_schedules import sgd_share
from tests.training import ScalarChain, train

EPOCH = {"batch": 2, "workload": ScalarChain(x=np.linspace(0.6, 1.2, 16))}  # 8 steps of one worker


def models(name, settings, workers=1, steps=30):
    return train(name, EPOCH["workload"], workers, settings, batch=EPOCH["batch"], steps=steps).models


def test_all_sgd_it_is_momentum_sgd_bit_for_bit_at_the_scaled_rate():
    settings = {"learning_rate": 0.01, "base_batch": 1, "centre": 0, "period": 0}
    for workers in (1, 4):
        plain = {"learning_rate": 0.01 * 2 * workers, "update": "momentum"}
        assert np.array_equal(models("rmsprop_warmup", settings, workers), models("sync_sgd", plain, workers))


def test_before_the_blend_it_is_rmsprop_with_momentum_at_its_own_rate_whatever_that_of_sgd():
    where = {"centre": 1000, "rms_rate": 0.001}
    slow, fast = (models("rmsprop_warmup", where | {"learning_rate": rate}) for rate in (1e-4, 10.0))
    assert np.allclose(slow, fast, rtol=1e-12)
    alone = models("rmsprop_warmup", where | {"momentum": 0})
    assert np.allclose(alone, models("rmsprop", {"learning_rate": 0.001}), rtol=1e-12)
    assert not np.allclose(alone, slow, rtol=1e-3)


def test_the_share_of_sgd_grows_with_the_epochs():
    run = train("rmsprop_warmup", EPOCH["workload"], 1, batch=2, steps=24)
    shares = [row[3] for row in run.outcome.event_logs[0].measures if row[2] == "share of SGD"]
    assert shares == [sgd_share(step / 8, 2, 1) for step in range(24)]
    assert shares[16] == 0.5 and shares[20:] == [1] * 4


def test_the_stairs_of_the_slow_start_halve_the_rate_first():
    at_once = {"centre": 0, "period": 0, "base_batch": 2}
    halved = models("rmsprop_warmup", at_once | {"learning_rate": 0.1, "slow_start": 90})
    assert np.array_equal(halved, models("rmsprop_warmup", at_once | {"learning_rate": 0.05}))
    assert not np.array_equal(halved, models("rmsprop_warmup", at_once | {"learning_rate": 0.05, "slow_start": 5}))


@pytest.mark.parametrize("workers", [2, 4])
def test_replicas_stay_identical_bit_for_bit(workers):
    replicas = models("rmsprop_warmup", {}, workers)
    assert all(np.array_equal(replicas[0], w) for w in replicas)
