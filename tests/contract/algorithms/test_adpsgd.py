import numpy as np
import pytest

from algorithms.decentralized import adpsgd
from cluster.faults import JITTERS, Faults
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.contract.algorithms.test_dpsgd import Apart
from tests.training import train

PLACES = [5.0, 1.0, 2.0, -3.0, 0.0, 4.0, 7.0, -1.0]
CLOUD = Faults(jitter=JITTERS["cloud"])


def course(workers, rate=1e-300, steps=40, topology="complete", curvature=1.0, centres=None, **where):
    def workload(rank):
        own = Apart(PLACES, centres or [0.0] * workers, rank)
        own.curvature = own.dtype.type(curvature)
        return own

    settings = {"learning_rate": rate, "topology": topology}
    return train("adpsgd", workload, workers, settings, steps=steps, **{"faults": CLOUD, **where})


@pytest.mark.parametrize("topology", ["ring", "complete", "exponential", "torus", "star", "random"])
def test_meetings_alone_keep_the_sum_and_bring_all_together(topology):
    x = np.ravel(course(8, topology=topology, curvature=0.0, steps=200).models)
    assert x.sum() == pytest.approx(sum(PLACES), rel=1e-12)
    assert np.ptp(x) < 1e-2


def test_every_gradient_changes_the_sum_by_its_own_step_and_nothing_else_does():
    workers, steps, rate = 4, 30, 0.01
    centres = [1.0, 2.0, 3.0, 4.0]
    spaces = {}

    def workload(rank):
        return spaces.setdefault(rank, Apart(PLACES, centres, rank))

    run = train("adpsgd", workload, workers, {"learning_rate": rate}, steps=steps, faults=CLOUD)
    steps_taken = sum(rate * (w[0] - c) for own in spaces.values() for c, seen in own.seen.items() for w in seen)
    assert np.sum(run.models) == pytest.approx(sum(PLACES[:workers]) - steps_taken, rel=1e-12)


def test_without_neighbours_everybody_trains_alone(monkeypatch):
    monkeypatch.setattr(adpsgd, "bipartite_subgraph", lambda graph, side: [[] for _ in graph])
    centres = [1.0, 2.0, 3.0, 4.0]
    for rank, x in enumerate(course(4, rate=0.1, steps=20, centres=centres).models):
        alone = train("sgd", Apart(PLACES, [centres[rank]], rank), 1, {"learning_rate": 0.1}, steps=20)
        assert np.array_equal(x, alone.models[0])


def test_nobody_waits_in_a_circle_for_ten_thousand_meetings():
    run = course(8, rate=0.01, steps=2500, topology="ring")
    meetings = sum(row[1] == 2 for event_log in run.outcome.event_logs for row in event_log.messages)
    assert meetings == 4 * 2500


def test_a_slow_worker_holds_up_only_whom_it_meets():
    slow = Faults(slow={7: 10.0})
    ends = [j.losses[-1][2] for j in course(8, rate=0.01, steps=50, faults=slow).outcome.event_logs]
    barrier = train("dpsgd", lambda rank: Apart(PLACES, [0.0] * 8, rank), 8, steps=50, faults=slow)
    assert max(ends[:7]) < 0.8 * max(j.losses[-1][2] for j in barrier.outcome.event_logs)


@pytest.mark.parametrize("victims", [(2,), (3,), (0, 5)], ids=["active", "passive", "one of each"])
def test_lost_workers_are_left_out(victims):
    crash = Faults(jitter=JITTERS["cloud"], crash=dict.fromkeys(victims, 0.012))
    run = course(6, rate=0.1, steps=100, fails=True, faults=crash)
    assert run.outcome.error is None and len(run.outcome.notes) == len(victims)
    left = [r for r, result in enumerate(run.outcome.results) if result is not None]
    assert len(left) == 6 - len(victims)
    assert all(len(run.outcome.event_logs[rank].losses) == 100 for rank in left)


def test_an_odd_ring_is_refused():
    with pytest.raises(ValueError, match="even number of workers"):
        check(Experiment.of({"algorithm": "adpsgd", "workers": 5, "topology": "ring"}))
