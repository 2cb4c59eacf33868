from itertools import pairwise

import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from experiments.specification.experiment import Experiment
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train
from tracing import WAIT

UNEQUAL = {"slow": {1: 1.0, 2: 1.3, 3: 2.0, 4: 4.0}, "jitter": JITTERS["cloud"]}
both = pytest.mark.parametrize("cache", [False, True], ids=["pulling", "cached"])


def course(settings, steps=60, faults=None, fails=False):
    where = {"faults": Faults(**(faults or UNEQUAL))}
    return train("ssp", Springs([0.0] * 4), 4, {"learning_rate": 0.05} | settings, steps=steps, fails=fails, **where)


def apart(run):
    return [row[3] for row in run.outcome.event_logs[0].measures if row[2] == "clocks apart"]


def waited(run):
    return sum(row[2] - row[1] for event_log in run.outcome.event_logs[1:] for row in event_log.spans if row[0] == WAIT)


@both
@pytest.mark.parametrize("bound", [0, 1, 3])
def test_clocks_are_never_further_apart_than_the_bound_and_the_step_being_made(bound, cache):
    gaps = apart(course({"bound": bound, "cache": cache}))
    assert max(gaps) == bound + 1  # it has just finished a step; to begin the next it waits


@both
def test_without_a_bound_nobody_waits_for_a_slower_one(cache):
    run = course({"bound": 1000, "cache": cache})
    ends = [event_log.losses[-1][2] for event_log in run.outcome.event_logs[1:]]
    assert ends[0] < ends[3] / 2.5
    assert max(apart(run)) > 20


@both
def test_the_larger_the_bound_the_less_is_waited(cache):
    waits = [waited(course({"bound": bound, "cache": cache})) for bound in (0, 1, 3, 10, 30)]
    assert all(a >= b for a, b in pairwise(waits))
    assert waits[0] > 2 * waits[-1]


class Remembering(Springs):
    """Every worker has a coordinate of its own, with gradient -1: what w says there is how many of its steps it has."""

    def __init__(self, workers):
        super().__init__(list(range(workers)), starts=[0.0], parameters=workers)

    def gradient(self, w, batch):
        loss, _ = super().gradient(w, batch)
        g = np.zeros_like(w)
        g[int(batch[0][0])] = -1.0
        return loss, g


@both
@pytest.mark.parametrize("bound", [0, 2, 5])
def test_a_worker_at_clock_c_sees_all_updates_up_to_c_minus_bound_minus_1_and_all_its_own(bound, cache):
    workload = Remembering(4)
    train(
        "ssp", workload, 4, {"learning_rate": 4.0, "bound": bound, "cache": cache}, steps=40,
        faults=Faults(**UNEQUAL),
    )  # fmt: skip  # rate 4 / 4 workers: one step moves the own coordinate by 1
    for own in range(4):
        for clock, w in enumerate(workload.seen[float(own)]):
            assert w[own] == clock
            assert w.min() >= clock - bound
    newer = any(w.max() > clock for clock, w in enumerate(workload.seen[3.0]))
    assert newer == (bound > 0)  # what nobody promised, but nobody hides either


def test_a_cache_pulls_about_once_in_bound_plus_one_clocks():
    pulling, cached = (course({"bound": 4, "cache": cache}, 50, {"slow": {}}) for cache in (False, True))
    counts = [len(run.outcome.event_logs[0].messages) for run in (pulling, cached)]
    assert counts[0] == 4 * 50
    assert counts[1] < 4 * 50 / 3


def test_the_slowest_worker_may_be_lost():
    run = course({"bound": 1}, faults=UNEQUAL | {"crash": {4: 0.05}}, fails=True)
    assert run.outcome.error is None and "rank 4 was lost" in run.outcome.notes[0]
    assert len(served(run)) > 3 * 60


def test_with_no_bound_that_matters_it_is_asynchronous_sgd_at_the_rate_over_n_bit_for_bit():
    where = {"steps": 40, "jitter": JITTERS["cloud"]}
    unbounded = long(4, {"learning_rate": 0.2, "bound": 10**6}, name="ssp", **where)
    assert served(unbounded) == served(long(4, {"learning_rate": 0.05}, **where))


def test_a_bound_below_zero_is_refused():
    with pytest.raises(ValueError, match="it must be 0 to"):
        Experiment.of({"algorithm": "ssp", "bound": -1})
