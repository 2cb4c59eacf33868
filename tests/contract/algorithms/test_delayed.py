import math

import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from tests.contract.algorithms.test_overlap import residual
from tests.training import ScalarChain, Springs, train


def iterates(delay, rate, steps, workers=1, curvature=1.0, **settings):
    """The model after 1, 2, ... updates, on f(w) = h w^2 / 2 from w = 1."""
    settings |= {"delay": delay, "learning_rate": rate}
    done = train("delayed", Springs([0.0] * workers, curvature=curvature), workers, settings, steps=steps)
    return [row[4][0] for row in done.outcome.event_logs[0].reports]


def test_a_fixed_delay_of_two_takes_the_known_steps():
    assert iterates(2, 0.1, 6) == pytest.approx([0.9, 0.8, 0.7, 0.61, 0.53, 0.46], abs=1e-12)


@pytest.mark.parametrize("layerwise", [True, False])
@pytest.mark.parametrize("delay", [0, 1, 2, 5])
def test_every_gradient_is_applied_exactly_so_many_steps_late(delay, layerwise):
    done = train("delayed", ScalarChain(), 2, {"delay": delay, "layerwise": layerwise, "learning_rate": 0.1}, steps=9)
    reference, seen = [ScalarChain().w], ScalarChain()
    for t in range(9):
        own = [seen.batch(np.array([2 * t % 8 + rank])) for rank in range(2)]
        gradients = [seen.gradient(reference[max(0, t - delay)], batch)[1] for batch in own]
        reference.append(reference[-1] - 0.1 * (gradients[0] + gradients[1]) / 2)
    reported = [row[4] for row in done.outcome.event_logs[0].reports]
    np.testing.assert_allclose(reported, reference[1:], rtol=1e-12)
    assert np.array_equal(done.models[0], reported[-1])
    assert done.staleness == [[min(t, delay) for t in range(9)], []]


def bound(delay):
    return 2 * math.sin(math.pi / (2 * (2 * delay + 1)))


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
@pytest.mark.parametrize("curvature", [1.0, 5.0])
def test_the_largest_stable_step_shrinks_as_the_theory_says(delay, curvature):
    early, late = {}, {}
    for share in (0.98, 1.02):
        path = np.abs(iterates(delay, share * bound(delay) / curvature, 600, curvature=curvature))
        early[share], late[share] = path[60:120].max(), path[-60:].max()
    assert late[0.98] < 0.2 * early[0.98]
    assert late[1.02] > 5 * early[1.02]


@pytest.mark.parametrize(("momentum", "limit"), [(0.0, 0.2846), (0.5, 0.1286), (0.9, 0.0215), (0.99, 0.0020)])
def test_the_more_momentum_the_smaller_the_steps_that_a_delay_of_five_bears(momentum, limit):
    for share, grows in ((0.9, False), (1.1, True)):
        rule = {"update": "momentum", "momentum": momentum, "layerwise": False}
        path = np.abs(iterates(5, share * limit, 1500, **rule))
        assert (path[-500:].max() > path[500:1000].max()) == grows


def test_a_delay_of_one_halves_the_largest_stable_step():
    assert [round(bound(k), 4) for k in (0, 1, 2, 3, 5)] == [2.0, 1.0, 0.6180, 0.4450, 0.2846]
    for k in (0, 1, 2, 3, 5):  # x_t+1 = x_t - lr h x_t-k grows by the largest root of z^(k+1) = z^k - lr h
        roots = np.roots([1, -1, *[0] * (k - 1), bound(k)] if k else [1, bound(0) - 1])
        assert np.abs(roots).max() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("delay", [0, 1, 2, 3])
def test_replicas_stay_identical_whatever_the_delay_and_however_ragged_the_workers(delay):
    late = Faults(slow={0: 3.0}, jitter=JITTERS["exponential"])
    where = {"faults": late, "network": NETWORKS["1GbE"]}
    done = train("delayed", residual(np.float32), 3, {"delay": delay, "update": "adam"}, batch=4, steps=12, **where)
    assert all(np.array_equal(done.models[0], w) for w in done.models)


def test_layer_by_layer_or_at_once_is_the_same_to_rounding():
    one, other = (
        train("delayed", residual(), 3, {"delay": 2, "layerwise": whole}, batch=4, steps=12).models[0]
        for whole in (True, False)
    )
    assert np.allclose(one, other, rtol=1e-12)


def test_a_delay_longer_than_the_training_still_applies_every_gradient():
    assert iterates(9, 0.1, 4) == pytest.approx([0.9, 0.8, 0.7, 0.6])
