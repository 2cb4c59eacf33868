import numpy as np
import pytest

from algorithms.pipelined import xpipe
from tests.training import ScalarChain, train

CHAIN = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 24))


@pytest.mark.parametrize(("chunks", "delays"), [(1, [3, 2, 1, 0]), (2, [2, 1, 1, 0]), (4, [1, 1, 1, 0])])
def test_updates_that_are_missing_are_those_of_micro_batches_on_their_way(chunks, delays):
    settings = {"chunks": chunks, "learning_rate": 0.001}
    run = train("xpipe", CHAIN, 4, settings, batch=4, steps=12)
    assert [staleness[-1] for staleness in run.staleness] == delays


def test_all_micro_batches_of_a_mini_batch_read_what_the_bellwether_foresaw():
    # one mini-batch of four micro-batches is one of one micro-batch, if all of them read the same weights
    alike = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.repeat(np.linspace(0.5, 1.5, 6), 4))
    settings = {"update": "momentum", "learning_rate": 0.02}
    (whole,) = train("xpipe", alike, 1, settings | {"chunks": 1}, batch=4, steps=12).models
    (parts,) = train("xpipe", alike, 1, settings | {"chunks": 4}, batch=4, steps=12).models
    assert np.allclose(whole, parts, rtol=1e-12, atol=0)
    deep = train("xpipe", alike, 4, settings | {"chunks": 4}, batch=4, steps=12)
    late = train("pipedream_2bw", alike, 4, {"chunks": 4, "momentum": 0.9, "learning_rate": 0.02}, batch=4, steps=12)
    (fresh,) = train("momentum", alike, 1, {"learning_rate": 0.02, "momentum": 0.9}, batch=4, steps=12).models
    assert np.abs(deep.shipped - fresh).max() < np.abs(late.shipped - fresh).max()


@pytest.mark.parametrize("updates", [1, 2, 7])
def test_while_gradients_stay_as_they_are_adams_prediction_is_exact(updates):
    w, g = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.7, 20.0])
    policy = xpipe.BellwetherPrediction(xpipe.Settings(learning_rate=0.01), None, w)
    for _ in range(updates):
        policy.update(w, g)
    u = policy.ahead(w, 3)
    for _ in range(3):
        policy.update(w, g)
    assert np.allclose(u, w, rtol=0, atol=1e-12)
