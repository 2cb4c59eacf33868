"""Numbers of an independent program in float64 for the server's rule, and how stale pushes are."""

import numpy as np
import pytest

from algorithms.asynchronous.async_diloco import Settings, check
from cluster.faults import Faults
from cluster.network import NETWORKS
from tests.contract.algorithms.test_noloco import Given
from tests.training import Springs, train

PUSHES = 0.5, 0.3, -0.2, 0.4, 0.1, 0.1
ONE_BY_ONE = {"update": "sgd", "learning_rate": 1.0, "period": 1, "outer_momentum": 0.9}


def served(run):
    """x after every push."""
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"buffer": 2}, [0.825, 0.468, 0.538, 0.1082, 0.0732, -0.28562]),
        ({"buffer": 2, "early_share": 0.5}, [0.825, 0.594, 0.538, 0.2531, 0.0732, -0.12371]),
        ({"buffer": 1}, [0.335, -0.3475, -0.50675, -1.308075, -1.9102675, -2.52224075]),
    ],
    ids=str,
)
def test_the_server_moves_as_in_an_independent_program(settings, expected):
    workload = Given(1.0, [-push for push in PUSHES])
    run = train("async_diloco", lambda rank: workload, 1, ONE_BY_ONE | settings, steps=6)
    assert served(run) == pytest.approx(expected, abs=1e-12)


def test_a_buffer_of_two_is_nesterovs_momentum_on_the_mean_of_each_pair():
    x, v, expected = 1.0, 0.0, []
    for pair in zip(PUSHES[::2], PUSHES[1::2], strict=True):
        v = 0.9 * v + np.mean(pair)
        x -= 0.7 * (np.mean(pair) + 0.9 * v)
        expected.append(x)
    workload = Given(1.0, [-push for push in PUSHES])
    run = train("async_diloco", lambda rank: workload, 1, ONE_BY_ONE | {"buffer": 2}, steps=6)
    assert served(run)[1::2] == pytest.approx(expected, rel=1e-12)


def visits(settings=None, fails=False, **faults):
    """The staleness of all pushes of four workers."""
    run = train(
        "async_diloco",
        Springs([0.0] * 8),
        4,
        {"update": "sgd", "learning_rate": 0.01, "outer_momentum": 0, "period": 12} | (settings or {}),
        steps=None,
        budget={"seconds": 2.0},
        network=NETWORKS["ideal"],
        faults=Faults(**faults),
        fails=fails,
    )
    return run.staleness[0], run


def test_pushes_of_equally_fast_workers_are_n_minus_1_late():
    staleness, _ = visits()
    assert len(staleness) > 100 and staleness[4:] == [3] * (len(staleness) - 4)


def test_a_slow_worker_is_late_unless_its_period_is_shorter():
    late, _ = visits(slow={4: 3.0})
    dynamic, run = visits({"dynamic": True}, slow={4: 3.0})
    assert max(late) == 9 and np.quantile(dynamic, 0.99) == 3  # a few pushes later the speeds are known
    taken = [len(event_log.losses) for event_log in run.outcome.event_logs[1:]]
    assert taken[3] == pytest.approx(taken[0] / 3, rel=0.1)


def test_a_quorum_answers_nobody_before_that_many_have_pushed():
    staleness, _ = visits({"quorum": 4})
    assert set(staleness) == {0}
    staleness, _ = visits({"quorum": 2})
    assert np.mean(staleness[8:]) == pytest.approx(2, abs=0.05) and max(staleness) == 4


def test_a_stale_push_weighs_less():
    plain, weighed = (
        served(
            train("async_diloco", Springs([0.0] * 2), 2, ONE_BY_ONE | {"outer_momentum": 0, "weigh": weigh}, steps=1)
        )
        for weigh in (False, True)
    )
    assert plain[0] == weighed[0] and plain[1] - plain[0] == pytest.approx((weighed[1] - weighed[0]) * np.sqrt(2))


def test_training_goes_on_without_a_lost_worker_and_with_one_that_returns():
    for quorum in (1, 3):
        _, lost = visits({"quorum": quorum}, fails=True, crash={2: 0.3})
        _, back = visits({"quorum": quorum}, fails=True, crash={2: 0.3}, back={2: 0.6})
        assert lost.outcome.error is None and back.outcome.error is None
        ends = [[log.losses[-1][2] for log in run.outcome.event_logs[1:]] for run in (lost, back)]
        assert ends[0][1] < 0.3 < 1.8 < min(ends[0][0], *ends[0][2:]) and min(ends[1]) > 1.8


@pytest.mark.parametrize(
    ("settings", "words"), [({"early_share": 0.5}, "use at most 0.25"), ({"quorum": 5}, "use at most 4")]
)
def test_settings_that_make_no_sense_together_are_refused_with_what_would_fit(settings, words):
    with pytest.raises(ValueError, match=words):
        check(4, 1, None, Settings(**settings))
