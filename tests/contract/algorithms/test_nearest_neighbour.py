import numpy as np
import pytest

from algorithms.decentralized import nearest_neighbour
from algorithms.parts.topology import neighbours
from cluster.faults import Faults
from tests.contract.algorithms.test_dpsgd import Apart
from tests.training import Springs, train

LOCKSTEP = {"update": "sgd", "synchronous": True, "restart": "none"}


def apart(run):
    """How far workers are from their mean after every step."""
    x = np.array([[row[4][0] for row in event_log.reports] for event_log in run.outcome.event_logs]).T
    return np.linalg.norm(x - x.mean(1, keepdims=True), axis=1)


@pytest.mark.parametrize(("topology", "workers", "eigenvalue"), [("ring", 16, -1), ("torus", 16, -3), ("ring", 8, -1)])
def test_on_even_rings_and_tori_the_worst_mode_of_disagreement_grows_as_theory_says(topology, workers, eigenvalue):
    a = np.zeros((workers, workers))
    for rank, others in enumerate(neighbours(topology, workers)):
        a[rank, others] = 1
    values, vectors = np.linalg.eigh(np.eye(workers) + a)
    assert values[0] == pytest.approx(eigenvalue, abs=1e-12)
    rate, places = 0.02, list(vectors[:, 0])

    def workload(rank):
        return Apart(places, [0.0] * workers, rank)

    spread = apart(
        train("nearest_neighbour", workload, workers, LOCKSTEP | {"topology": topology, "learning_rate": rate})
    )
    assert np.allclose(spread[1:] / spread[:-1], 1 - rate * eigenvalue, rtol=1e-9)


def test_on_a_complete_graph_all_stay_one_and_take_the_sum_of_all_gradients():
    centres = [3.0, -1.0, 0.5, 2.0]
    run = train("nearest_neighbour", Springs(centres), 4, LOCKSTEP | {"topology": "complete", "learning_rate": 0.05})
    together = train("sync_sgd", Springs(centres), 4, {"learning_rate": 0.2})
    assert apart(run)[-1] < 1e-15
    assert np.allclose(run.models, together.models, rtol=1e-12)


def test_two_take_the_sum_of_both_gradients():
    centres = [3.0, -1.0]
    run = train("nearest_neighbour", Springs(centres), 2, LOCKSTEP | {"topology": "ring", "learning_rate": 0.05})
    together = train("sync_sgd", Springs(centres), 2, {"learning_rate": 0.1})
    assert np.allclose(run.models, together.models, rtol=1e-12)


@pytest.mark.parametrize("update", ["sgd", "adagrad"])
def test_without_neighbours_everybody_trains_alone(monkeypatch, update):
    monkeypatch.setattr(nearest_neighbour, "neighbours", lambda *_: [[], []])
    centres = [3.0, -1.0]
    run = train("nearest_neighbour", Springs(centres), 2, LOCKSTEP | {"update": update, "learning_rate": 0.1})
    for x, centre in zip(run.models, centres, strict=True):
        assert np.array_equal(x, train(update, Springs([centre]), 1, {"learning_rate": 0.1}).models[0])


@pytest.mark.parametrize(("topology", "workers"), [("ring", 16), ("torus", 16), ("ring", 9), ("star", 6)])
def test_with_lazy_weights_no_disagreement_grows_and_the_mean_takes_the_mean_gradient(topology, workers):
    places = list(np.random.default_rng(1).standard_normal(workers))

    def workload(rank):
        return Apart(places, [0.0] * workers, rank)

    settings = LOCKSTEP | {"topology": topology, "weights": "lazy", "learning_rate": 0.1}
    run = train("nearest_neighbour", workload, workers, settings, steps=30)
    assert (np.diff(apart(run)) <= 1e-15).all()
    assert np.mean(run.models) == pytest.approx(0.9**30 * np.mean(places), rel=1e-12)


@pytest.mark.parametrize("restart", ["best", "mean"])
def test_a_restart_brings_all_together_again(restart):
    settings = {"learning_rate": 0.02, "restart": restart, "period": 10, "synchronous": True, "update": "sgd"}
    springs = Springs(list(np.random.default_rng(0).standard_normal(16)))
    spread = apart(train("nearest_neighbour", springs, 16, settings | {"topology": "ring"}, steps=40))
    assert (spread[9::10] < 1e-14).all() and (spread[8::10] > 1e-3).all()


def test_the_best_is_the_one_whose_losses_were_least():
    centres = [5.0, 1.1, -4.0, 9.0]  # the start, 1, is best for worker 1
    settings = LOCKSTEP | {"learning_rate": 1e-6, "period": 1, "restart": "best", "topology": "ring"}
    run = train("nearest_neighbour", Springs(centres), 4, settings, steps=1)
    before = 1 - 1e-6 * (1 - 1.1) - 1e-6 * ((1 - 5.0) + (1 + 4.0))  # its own step and those of its neighbours 0 and 2
    assert np.allclose(run.models, before, rtol=1e-12)


def test_a_disturbance_reaches_no_further_than_one_hop_a_step():
    workers, steps = 12, 4
    plain, other = [0.0] * workers, [0.0] * 5 + [1.0] + [0.0] * 6
    ends = [
        np.ravel(
            train("nearest_neighbour", Springs(c * steps), workers, LOCKSTEP | {"topology": "ring"}, steps=steps).models
        )
        for c in (plain, other)
    ]
    reached = np.flatnonzero(ends[0] != ends[1])
    assert reached.tolist() == list(range(5 - steps, 5 + steps + 1))


def test_asynchronously_every_gradient_is_applied_once_or_came_too_late():
    run = train("nearest_neighbour", Springs([0.0] * 9), 9, {"restart": "none"}, steps=30)
    assert sum(len(event_log.messages) for event_log in run.outcome.event_logs) == 9 * 4 * 30


def test_without_restarts_the_neighbours_of_a_lost_worker_go_on_without_it():
    run = train(
        "nearest_neighbour", Springs([0.0] * 4), 4, {"restart": "none"}, steps=30, fails=True,
        faults=Faults(crash={2: 3e-4}),
    )  # fmt: skip
    assert run.outcome.error is None and "rank 2 was lost" in run.outcome.notes[0]
    steps = [len(event_log.losses) for event_log in run.outcome.event_logs]
    assert 0 < steps[2] < 30 and steps[:2] + steps[3:] == [30] * 3
