import numpy as np
import pytest

import workloads
from algorithms.asynchronous.project_adam import gradient
from cluster.faults import Faults
from tests.training import Springs, train
from workloads.layers import Dense


def digits(hidden):
    module = workloads.find("digits")
    return module.build(module.Settings(hidden=hidden), np.dtype("float64"))


def pushed(run, worker=1):
    """Numbers in the first push of a worker."""
    return next(row[2] for row in run.outcome.event_logs[worker].messages if row[0] == 0) // 8


def test_the_factors_make_the_gradient_they_are_sent_for():
    settings = {"learning_rate": 0.1}
    workload = digits("32,16")
    with_factors, without = (
        train("project_adam", workload, 2, settings | {"factors": f}, steps=6, batch=4).shipped for f in (True, False)
    )
    assert np.allclose(with_factors, without, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(("batch", "factors"), [(10, True), (11, False)])
def test_factors_travel_just_when_there_are_fewer_samples_than_m_n_over_m_plus_n(batch, factors):
    workload = digits("12")  # its first layer has 64 x 12 weights: 768 / 76 = 10.1
    run = train("project_adam", workload, 1, steps=1, batch=batch)
    first = batch * (64 + 12) if factors else 64 * 12 + 12
    last = min(batch * (12 + 10), 12 * 10 + 10)
    assert pushed(run) == first + last
    assert isinstance(workload.model.layers[0], Dense)


def test_a_push_is_read_from_the_last_layer_to_the_first():
    rng = np.random.default_rng(0)
    inputs, errors, plain = rng.standard_normal((5, 3)), rng.standard_normal((5, 2)), rng.standard_normal(4)
    g = gradient((plain, (inputs, errors)), np.zeros(12))
    assert np.allclose(g, [*(inputs.T @ errors).ravel(), *errors.sum(0), *plain])


@pytest.mark.parametrize(("finish", "stopped"), [(1.0, 0), (0.75, 1), (0.5, 2)])
def test_when_enough_have_finished_the_others_are_stopped(finish, stopped):
    slow = Faults(slow={1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0})
    run = train("project_adam", Springs([0.0] * 4), 4, {"finish": finish}, steps=40, faults=slow)
    steps = [len(event_log.losses) for event_log in run.outcome.event_logs[1:]]
    assert steps[: 4 - stopped] == [40] * (4 - stopped)
    assert all(n < 40 for n in steps[4 - stopped :])


@pytest.mark.parametrize(("workers", "finish", "enough"), [(4, 0.75, 3), (10, 0.9, 9), (10, 0.7, 7), (3, 0.01, 1)])
def test_the_run_ends_when_enough_have_finished_and_the_others_have_ended_the_step_they_are_in(workers, finish, enough):
    slow = Faults(slow={rank: float(rank) for rank in range(1, workers + 1)})
    run = train("project_adam", Springs([0.0] * workers), workers, {"finish": finish}, steps=20, faults=slow)
    ends = sorted(event_log.losses[-1][2] for event_log in run.outcome.event_logs[1:] if len(event_log.losses) == 20)
    assert len(ends) == enough
    step = run.outcome.event_logs[workers].losses[0][2]  # the slowest one's first took so long
    assert ends[-1] <= run.outcome.trace().seconds() < ends[-1] + 1.1 * step
