"""Six workers with unlike bowls, of other curvatures around other centres, whose common optimum is known."""

from itertools import pairwise

import numpy as np
import pytest

from algorithms.parts.topology import mixing, neighbours
from cluster.network import NETWORKS
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.training import Springs, train

CENTRES = np.array([3.0, -1.0, 0.5, 2.0, -4.0, 1.0])
CURVATURES = np.array([1.0, 0.2, 0.6, 1.4, 0.3, 0.8])
OPTIMUM = CURVATURES @ CENTRES / CURVATURES.sum()
RATE = 0.1
GRAPHS = ["ring", "torus", "exponential", "complete", "star", "random"]


def course(name="gradient_tracking", steps=8, **settings):
    def workload(rank):
        return Springs([CENTRES[rank]] * 6, curvature=CURVATURES[rank])

    return train(name, workload, 6, {"learning_rate": RATE} | settings, steps=steps)


def models(run):
    """x of all workers after every step, (steps, workers)."""
    return np.array([[row[4][0] for row in event_log.reports] for event_log in run.outcome.event_logs]).T


def slopes(x):
    return CURVATURES * (x - CENTRES)


@pytest.mark.parametrize("topology", GRAPHS)
@pytest.mark.parametrize("mix", ["before", "after"])
def test_it_takes_the_steps_of_its_two_equations(topology, mix):
    w = mixing(neighbours(topology, 6))
    x = np.ones(6)
    y = slopes(x)
    for after in models(course(topology=topology, mix=mix)):
        before, x = x, w @ x - RATE * y if mix == "before" else w @ (x - RATE * y)
        y = w @ y + slopes(x) - slopes(before)
        assert after == pytest.approx(x, abs=1e-12)


@pytest.mark.parametrize("mix", ["before", "after"])
def test_the_mean_moves_by_the_mean_gradient_so_the_sum_of_all_estimates_is_that_of_all_gradients(mix):
    x = np.vstack([np.ones(6), models(course(mix=mix))])
    for before, after in pairwise(x):
        assert after.mean() == pytest.approx(before.mean() - RATE * slopes(before).mean(), abs=1e-12)
    assert np.ptp(x[3]) > 0.01


@pytest.mark.parametrize("topology", GRAPHS)
@pytest.mark.parametrize("mix", ["before", "after"])
def test_every_worker_ends_at_the_common_optimum_where_dpsgd_stops_short_of_it(topology, mix):
    settings = {"topology": topology, "mix": mix, "steps": 300}
    tracked, plain = (models(course(name, **settings))[-1] for name in ("gradient_tracking", "dpsgd"))
    assert np.abs(tracked - OPTIMUM).max() < 1e-7
    w, h = mixing(neighbours(topology, 6)), np.diag(CURVATURES)
    if mix == "before":
        stops = np.linalg.solve(np.eye(6) - w + RATE * h, RATE * h @ CENTRES)
    else:
        stops = np.linalg.solve(np.eye(6) - w + RATE * w @ h, RATE * w @ h @ CENTRES)
    assert np.allclose(plain, stops, atol=1e-7)
    if (topology, mix) != ("complete", "after"):  # which is synchronous SGD
        assert np.abs(plain - OPTIMUM).max() > 0.02


@pytest.mark.parametrize(("mix", "bound"), [("before", 2 / 9), ("after", 2.0)])
def test_it_tolerates_rates_up_to_the_bound_in_like_bowls_on_a_ring_of_four(mix, bound):
    def apart(share):
        springs = [Springs([centre] * 4) for centre in (3.0, -1.0, 0.5, 2.0)]
        settings = {"mix": mix, "learning_rate": share * bound}
        return np.abs(models(train("gradient_tracking", lambda rank: springs[rank], 4, settings, steps=200))[-1]).max()

    assert apart(0.95) < 2 < 1e3 < apart(1.2)


def test_mixed_before_the_step_the_messages_travel_while_the_gradient_is_computed():
    def seconds(mix):
        run = train("gradient_tracking", Springs([1.0] * 4), 4, {"mix": mix}, steps=10, network=NETWORKS["1GbE"])
        return run.outcome.trace().seconds()

    computing = train("sgd", Springs([1.0] * 4), 1, steps=10).outcome.trace().seconds()
    assert seconds("before") < 1.1 * computing < seconds("after")


def test_a_message_holds_the_model_and_the_estimate():
    run = train("gradient_tracking", Springs([1.0] * 6, parameters=7), 6, steps=5)
    assert run.outcome.trace().traffic().sum() == 6 * 2 * 5 * 2 * 7 * 8


def test_a_disconnected_graph_is_refused():
    with pytest.raises(ValueError, match="not connected"):
        check(Experiment.of({"algorithm": "gradient_tracking", "edges": "0-1,2-3"}))
