from itertools import pairwise

import numpy as np
import pytest

from algorithms.decentralized import dpsgd
from algorithms.parts.topology import mixing, ring, spectral_gap
from cluster.comm import RankLost
from cluster.faults import Faults
from cluster.network import NETWORKS
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.training import Springs, train

CENTRES = [3.0, -1.0, 0.5, 2.0, -4.0, 1.0]


class Apart(Springs):
    """Every worker starts at another place: worker i at its own entry of `places`."""

    def __init__(self, places, centres, rank):
        super().__init__(centres, starts=[places[rank]])


def course(settings, places=None, centres=CENTRES, steps=8, workers=6, **where):
    def workload(rank):
        return Apart(places or [1.0] * workers, centres, rank)

    return train("dpsgd", workload, workers, settings, steps=steps, **where)


def models(run):
    """x of all workers after every step, (steps, workers)."""
    return np.array([[row[4][0] for row in event_log.reports] for event_log in run.outcome.event_logs]).T


@pytest.mark.parametrize("topology", ["ring", "torus", "exponential", "complete", "star", "random"])
@pytest.mark.parametrize("mix", ["before", "after"])
def test_the_mean_moves_by_the_mean_gradient_whatever_the_graph(topology, mix):
    x = models(course({"learning_rate": 0.1, "topology": topology, "mix": mix}))
    mean = [1.0, *x.mean(1)]
    for before, after in pairwise(mean):
        assert after == pytest.approx(before - 0.1 * (before - np.mean(CENTRES)), rel=1e-12)
    assert np.ptp(x[-1]) > 0.01 or topology == "complete"


def test_on_a_complete_graph_mixed_after_the_step_it_is_synchronous_sgd():
    mixed = course({"learning_rate": 0.1, "topology": "complete", "mix": "after"})
    together = train("sync_sgd", Springs(CENTRES), 6, {"learning_rate": 0.1}, steps=8)
    for x, w in zip(mixed.models, together.models, strict=True):
        assert np.allclose(x, w, rtol=1e-12)


def test_without_neighbours_everybody_trains_alone(monkeypatch):
    monkeypatch.setattr(dpsgd, "neighbours", lambda *_: [[] for _ in CENTRES])
    for mix in ("before", "after"):
        mixed = course({"learning_rate": 0.1, "mix": mix}).models
        for x, centre in zip(mixed, CENTRES, strict=True):
            assert np.array_equal(x, train("sgd", Springs([centre]), 1, {"learning_rate": 0.1}, steps=8).models[0])


def test_without_steps_disagreement_shrinks_by_the_gap_and_exactly_so_on_the_slowest_mode():
    workers = 6
    w = mixing(ring(workers))
    values, vectors = np.linalg.eigh(w)
    slowest = vectors[:, np.argsort(np.abs(values))[-2]]
    x = models(course({"learning_rate": 1e-300}, places=list(slowest), centres=[0.0] * 6, steps=5))
    spread = np.linalg.norm(x - x.mean(1, keepdims=True), axis=1)
    assert np.allclose(spread[1:] / spread[:-1], 1 - spectral_gap(w), rtol=1e-12)
    x = models(course({"learning_rate": 1e-300}, places=[5.0, 1, 2, -3, 0, 4], centres=[0.0] * 6, steps=5))
    spread = np.linalg.norm(x - x.mean(1, keepdims=True), axis=1)
    assert (spread[1:] <= (1 - spectral_gap(w)) * spread[:-1] * (1 + 1e-12)).all()


def test_the_messages_travel_while_the_gradient_is_computed():
    link = NETWORKS["1GbE"]
    before, after = (course({"mix": mix}, network=link).outcome.trace().seconds() for mix in ("before", "after"))
    assert before < after


def test_one_message_delay_a_step_however_many_workers():
    def seconds(name, workers):
        run = train(name, Springs([0.0] * workers), workers, steps=10, network=NETWORKS["1GbE"])
        return run.outcome.trace().seconds()

    assert seconds("dpsgd", 32) == pytest.approx(seconds("dpsgd", 4), rel=0.02)
    assert seconds("sync_sgd", 32) > 1.5 * seconds("sync_sgd", 4)


def test_a_lost_neighbour_ends_it_with_rank_and_step():
    run = course({}, steps=50, fails=True, faults=Faults(crash={3: 0.004}))
    assert isinstance(run.outcome.error, RankLost) and run.outcome.error.rank == 3
    assert all(event_log.losses for event_log in run.outcome.event_logs)


def test_a_disconnected_graph_is_refused():
    with pytest.raises(ValueError, match="not connected"):
        check(Experiment.of({"algorithm": "dpsgd", "edges": "0-1,2-3"}))
