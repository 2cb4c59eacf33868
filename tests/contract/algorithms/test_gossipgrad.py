import numpy as np
import pytest

from algorithms.decentralized import gossipgrad
from cluster.faults import Faults
from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from tests.contract.algorithms.test_dpsgd import Apart
from tests.training import Springs, train

PLACES = [5.0, 1.0, 2.0, -3.0, 0.0, 4.0, 7.0, -1.0, 0.3, 2.2, -5.0, 9.0, 1.1, 0.6, -0.7, 3.0]
rules = pytest.mark.parametrize("partners", ["dissemination", "hypercube"])


def course(workers, settings=None, rate=1e-300, steps=6, **where):
    def workload(rank):
        return Apart(PLACES, [0.0] * workers, rank)

    return train("gossipgrad", workload, workers, {"learning_rate": rate, **(settings or {})}, steps=steps, **where)


@rules
@pytest.mark.parametrize("workers", [2, 4, 8, 16])
def test_after_log2_n_steps_models_agree_exactly(partners, workers):
    run = course(workers, {"partners": partners}, steps=workers.bit_length() - 1)
    assert np.allclose(np.ravel(run.models), np.mean(PLACES[:workers]), rtol=1e-14)


@pytest.mark.parametrize(("workers", "error"), [(6, 0.083), (12, 0.042)])
def test_other_numbers_of_workers_agree_nearly(workers, error):
    s = gossipgrad.Settings(rotate=False)
    mixed = np.eye(workers)
    for step in range((workers - 1).bit_length()):
        w = np.zeros((workers, workers))
        for rank in range(workers):
            w[rank, rank] += 0.5
            w[rank, gossipgrad.partners(rank, workers, step, s)[1]] += 0.5
        assert np.allclose(w.sum(0), 1) and np.allclose(w.sum(1), 1)
        mixed = w @ mixed
    assert np.abs(mixed - 1 / workers).max() == pytest.approx(error, abs=5e-4)


@rules
@pytest.mark.parametrize("rotate", [False, True])
def test_whom_one_sends_to_hears_from_one(partners, rotate):
    s = gossipgrad.Settings(partners=partners, rotate=rotate)
    for step in range(20):
        pairs = [gossipgrad.partners(rank, 8, step, s, seed=3) for rank in range(8)]
        assert sorted(to for to, _ in pairs) == list(range(8))
        for rank, (to, source) in enumerate(pairs):
            assert pairs[to][1] == rank and pairs[source][0] == rank and to != rank


def test_rotation_brings_other_partners():
    s = gossipgrad.Settings()
    met = {gossipgrad.partners(0, 16, step, s)[0] for step in range(80)}
    assert len(met) == 15


@pytest.mark.parametrize("mode", ["model", "gradient"])
def test_the_mean_moves_by_the_mean_gradient(mode):
    run = course(8, {"mode": mode}, rate=0.1, steps=10)
    x = np.array([[row[4][0] for row in event_log.reports] for event_log in run.outcome.event_logs]).T
    mean = [np.mean(PLACES[:8]), *x.mean(1)]
    assert np.allclose(np.divide(mean[1:], mean[:-1]), 0.9, rtol=1e-12)


def test_gradients_that_are_exchanged_leave_replicas_apart_and_models_do_not():
    springs = [3.0, -1.0, 0.5, 2.0]
    ends = {
        mode: np.ptp(train("gossipgrad", Springs(springs), 4, {"mode": mode, "learning_rate": 0.1}, steps=99).models)
        for mode in ("model", "gradient")
    }
    assert ends["gradient"] > 3 * ends["model"]


def test_a_lost_worker_is_left_out_by_its_partners():
    run = course(8, rate=0.1, steps=60, fails=True, faults=Faults(crash={3: 0.01, 6: 0.012}))
    assert run.outcome.error is None and len(run.outcome.notes) == 2
    left = [event_log.losses for event_log in run.outcome.event_logs]
    assert [len(losses) == 60 for losses in left].count(True) == 6


def test_a_hypercube_has_a_power_of_two_of_corners():
    with pytest.raises(ValueError, match=r"6 workers .*hypercube.* 1, 2, 4, 8"):
        check(Experiment.of({"algorithm": "gossipgrad", "workers": 6, "partners": "hypercube"}))
