import numpy as np
import pytest

from cluster.faults import Faults
from tests.contract.algorithms.test_dpsgd import Apart
from tests.training import train

PLACES = [5.0, 1.0, 2.0, -3.0, 0.0, 4.0, 7.0, -1.0]


def course(workers, rate=1e-300, steps=6, **where):
    def workload(rank):
        return Apart(PLACES, [0.0] * workers, rank)

    return train("push_sum", workload, workers, {"learning_rate": rate}, steps=steps, **where)


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_after_log2_n_rounds_everybody_has_the_exact_mean(workers):
    run = course(workers, steps=workers.bit_length() - 1)
    assert np.allclose(np.ravel(run.models), np.mean(PLACES[:workers]), rtol=1e-14)


@pytest.mark.parametrize("workers", [3, 5, 6, 7])
def test_any_number_of_workers_comes_to_agree_on_the_mean(workers):
    assert np.allclose(np.ravel(course(workers, steps=60).models), np.mean(PLACES[:workers]), rtol=1e-9)


def test_the_sum_of_all_x_changes_by_the_gradients_alone():
    z = np.array([[row[4][0] for row in j.reports] for j in course(4, rate=0.1, steps=5).outcome.event_logs]).T
    mean = [np.mean(PLACES[:4]), *z.mean(1)]
    assert np.allclose(np.divide(mean[1:], mean[:-1]), 0.9, rtol=1e-12)


def test_what_is_lost_with_a_worker_is_lost_of_x_and_weight_alike():
    run = course(8, rate=0.1, steps=400, fails=True, faults=Faults(crash={3: 0.01}))
    assert run.outcome.error is None and "rank 3 was lost" in run.outcome.notes[0]
    left = [result for result in run.outcome.results if result is not None]
    assert len(left) == 7 and np.abs(left).max() < 0.1
