import numpy as np
import pytest

from cluster.collectives import ALL_REDUCE
from cluster.faults import Faults
from cluster.network import NETWORKS
from tests.training import ScalarChain, Springs, train


def test_it_is_the_mean_of_the_gradients_and_not_their_sum():
    step = train("sync_sgd", Springs([1.0, -2.0, 4.0]), 3, {"learning_rate": 0.1}, steps=1)
    assert step.models[0] == pytest.approx([1 - 0.1 * (1 - 1.0)])  # the mean of the centres is 1


@pytest.mark.parametrize("collective", ["fast", *ALL_REDUCE])
def test_replicas_stay_identical_bit_for_bit(collective):
    run = train("sync_sgd", ScalarChain(dtype=np.float32), 4, batch=2, steps=7, collective=collective)
    assert all(np.array_equal(run.models[0], w) for w in run.models)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_n_workers_are_one_worker_with_n_times_the_batch(workers):
    one = train("sgd", ScalarChain(), batch=8, steps=20).models[0]
    many = train("sync_sgd", ScalarChain(), workers, batch=8 // workers, steps=20).models[0]
    assert np.allclose(many, one, rtol=1e-13, atol=0)


def test_everybody_waits_for_the_slowest():
    def seconds(workers, slow):
        where = {"network": NETWORKS["ideal"], "faults": Faults(slow=slow)}
        return train("sync_sgd", Springs([0.0] * 4), workers, steps=10, **where).outcome.trace().seconds()

    assert seconds(4, {2: 3.0}) == pytest.approx(seconds(1, {0: 3.0}), rel=0.02)
    assert seconds(4, {2: 3.0}) > 2.9 * seconds(4, {})
