"""Hogwild: alone it is SGD, apart it is sequential, atomic it loses nothing; what is lost otherwise is counted."""

from functools import partial

import numpy as np
import pytest

from algorithms.shared_memory import hogbatch, hogwild
from cluster import simulated
from cluster.faults import JITTERS, Faults
from cluster.simulated.cells import MEETING, TAKEN
from tests.training import Springs, train
from workloads import sparse
from workloads.quadratic import Quadratic
from workloads.shared_memory import Descent
from workloads.sparse import Sparse
from workloads.workload import Evaluation, Workload


def problem(dtype=np.float64, **settings):
    return sparse.build(sparse.Settings(**{"rows": 384, "features": 200, "nonzeros": 8} | settings), dtype)


def measured(run, quantity):
    return [row[3] for event_log in run.outcome.event_logs for row in event_log.measures if row[2] == quantity]


class Pull(Workload):
    """Every sample has the same gradient everywhere, -1 in all coordinates: w counts how many were added."""

    name, shuffle, samples, dtype = "pull", False, 480, np.dtype("float64")

    def __init__(self, parameters=6):
        self.parameters, self.tensors = parameters, ((slice(0, parameters), (parameters,)),)

    def start(self, seed):
        return np.zeros(self.parameters)

    def batch(self, indices):
        return (indices,)

    def gradient(self, w, batch):
        return 1.0, np.full(self.parameters, -1.0)

    def evaluate(self, w):
        return Evaluation(1.0, np.nan)


@pytest.mark.parametrize("atomic", [False, True])
def test_one_thread_is_sgd_on_sparse_rows_bit_for_bit(run, atomic):
    settings = {"learning_rate": 0.5, "atomic": atomic}
    mine = train("hogwild", problem(np.float32), 1, settings, batch=1, steps=100, run=run)
    sgd = train("sgd", problem(np.float32), 1, {"learning_rate": 0.5}, batch=1, steps=100)
    assert np.array_equal(mine.models[0], sgd.models[0]) and mine.models[0].any()


LOOPS = {1: (hogwild.descend, hogwild.descend_rows)} | {
    b: (hogbatch.descend, partial(hogbatch.descend_rows, b)) for b in (2, 3, 8)
}


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("per_step", LOOPS)
def test_the_step_that_its_file_shows_is_the_one_of_its_compiled_loop_bit_for_bit(per_step, dtype, atomic):
    workload, rng = problem(dtype, l2=0.01, skew=1.0), np.random.default_rng(1)
    mine, indices = rng.standard_normal(workload.parameters).astype(dtype), rng.permutation(workload.samples)[:22]
    compiled = mine.copy()
    descent = Descent(workload, indices, *LOOPS[per_step], (0.3,), per_step)
    losses = sum(step(mine, False) for step in descent.parts())
    assert losses == pytest.approx(descent(compiled, atomic), rel=1e-12)
    assert np.array_equal(mine, compiled)


def apart(workers, batch, rounds):
    """Rows of which those of different workers have no feature in common."""
    rng, rows = np.random.default_rng(0), workers * batch * rounds
    owner = np.arange(rows) // batch % workers
    index = np.concatenate([20 * k + rng.permutation(20)[:3] for k in owner])
    target = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    data = target, 3 * np.arange(rows + 1), index, rng.standard_normal(3 * rows)
    workload = Sparse(*data, data, 20 * workers, 0.01)
    workload.shuffle = False
    return workload


def test_threads_whose_samples_have_nothing_in_common_do_what_one_would_do_after_the_other(run):
    together = train("hogwild", apart(3, 4, 30), 3, {"learning_rate": 0.5}, batch=4, steps=30, run=run)
    alone = train("sgd", apart(3, 4, 30), 1, {"learning_rate": 0.5}, batch=1, steps=360)
    for w in together.models:
        np.testing.assert_allclose(w, alone.models[0], rtol=1e-12)
    if run is simulated.run:
        assert not any(measured(together, "conflicts")) and not any(measured(together, "lost"))
        assert sum(map(sum, together.staleness)) > 0  # others did write, but elsewhere


def test_with_atomic_additions_all_that_was_computed_is_added(run):
    done = train("hogwild", Pull(), 4, {"learning_rate": 0.5, "atomic": True}, batch=8, steps=15, run=run)
    assert all(w.tolist() == [0.5 * 480] * 6 for w in done.models)
    assert not any(measured(done, "lost"))


@pytest.mark.parametrize("workers", [2, 4, 12])
def test_what_is_not_there_in_the_end_was_counted_as_lost(workers):
    steps = 480 // 4 // workers
    done = train("hogwild", Pull(), workers, {"learning_rate": 1.0}, batch=4, steps=steps)
    lost = sum(measured(done, "lost")) * 4 * 6  # a part of the coordinates that a mini-batch writes
    assert lost > 0
    assert done.models[0].sum() == pytest.approx(480 * 6 - lost, abs=1e-9)


def lost_on(features, nonzeros, steps, workers=2):
    """The share of additions that threads lose on rows without popular features, and the seconds of a step."""
    rng, count = np.random.default_rng(0), 4096
    index = np.stack([np.sort(rng.choice(features, nonzeros, replace=False)) for _ in range(count)])
    ends = np.arange(0, index.size + 1, nonzeros)
    data = np.ones(count), ends, index.ravel(), np.ones(index.size)
    done = train("hogwild", Sparse(*data, data, features, 0.0), workers, {}, batch=64, steps=steps)
    seconds = max(event_log.losses[-1][2] for event_log in done.outcome.event_logs)
    return np.mean(measured(done, "lost")), seconds / (64 * steps)


@pytest.mark.slow
@pytest.mark.parametrize("nonzeros, features", [(4, 1000), (16, 4000), (32, 8000)])
def test_an_addition_is_lost_where_two_writes_of_one_coordinate_meet_and_not_two_whole_steps(nonzeros, features):
    lost, step = lost_on(features, nonzeros, 64)
    one_write = TAKEN * (1 + nonzeros) / 2  # in the mean over as many lines, whose stores wait for each other
    assert lost == pytest.approx(nonzeros / features * one_write / step, rel=0.4)  # times and orders are drawn


@pytest.mark.parametrize("nonzeros", [4, 16, 64])
def test_threads_that_touch_all_lines_lose_a_share_that_does_not_depend_on_how_many(nonzeros):
    assert lost_on(nonzeros, nonzeros, 8)[0] == pytest.approx(MEETING, rel=0.5)  # times are drawn


@pytest.mark.slow
@pytest.mark.parametrize(
    "nonzeros, features, counted",
    [
        (16, 16, 5.5e-2), (8, 100, 0.91e-2), (8, 200, 0.51e-2), (4, 1000, 0.050e-2), (8, 2000, 0.056e-2),
        (16, 10_000, 0.027e-2), (32, 10_000, 0.030e-2),
    ],
)  # fmt: skip
def test_two_simulated_threads_lose_within_a_factor_of_two_of_what_was_counted_on_real_ones(
    nonzeros, features, counted
):
    lost, _ = lost_on(features, nonzeros, 32)
    assert counted / 2 < lost < 2 * counted


@pytest.mark.slow
@pytest.mark.parametrize("dimension, counted", [(100, 5.2e-2), (1000, 4.4e-2), (10_000, 13.6e-2)])
def test_and_so_they_do_with_dense_gradients(dimension, counted):
    bowl = Quadratic(np.zeros((1024, dimension)), np.ones(dimension), np.ones(dimension))
    done = train("hogwild", bowl, 2, {}, batch=64, steps=128)  # meetings are few, and some last
    assert counted / 2 < np.mean(measured(done, "lost")) < 2 * counted


def test_one_thread_loses_nothing_however_short_its_steps():
    assert lost_on(features=1, nonzeros=1, steps=8, workers=1)[0] == 0


def test_dense_gradients_always_conflict_and_sparse_ones_seldom():
    dense = train("hogwild", Pull(), 4, {}, batch=4, steps=30)
    few = train("hogwild", problem(features=20_000), 4, {}, batch=4, steps=24)
    assert np.mean(measured(dense, "conflicts")) > 0.8
    assert 0 < np.mean(measured(few, "conflicts")) < 0.02


def test_popular_features_are_where_the_conflicts_are():
    def conflicts(skew):
        return np.mean(measured(train("hogwild", problem(skew=skew), 4, {}, batch=4, steps=24), "conflicts"))

    assert conflicts(1.5) > 2 * conflicts(0.0)


@pytest.mark.parametrize("jitter", ["none", "exponential"])
@pytest.mark.parametrize("workers", [2, 5])
def test_between_a_look_and_its_write_everybody_else_writes_about_once(workers, jitter):
    done = train("hogwild", Springs([0.0] * 480), workers, {"atomic": True}, batch=4, steps=480 // 4 // workers,
                 faults=Faults(jitter=JITTERS[jitter]))  # fmt: skip
    applied = [event_log.applied for event_log in done.outcome.event_logs]
    assert sum(map(len, applied)) == 480
    together = min(rows[-1][0] for rows in applied)  # then the first has finished
    staleness = [s for rows in applied for at, s in rows if at <= together]
    assert np.mean(staleness) == pytest.approx(workers - 1, rel=0.08)


def test_the_rate_backs_off_after_each_epoch():
    done = train("hogwild", Pull(1), 1, {"learning_rate": 1.0, "back_off": 0.5}, batch=48, steps=35)
    assert done.models[0].tolist() == [480 + 480 / 2 + 480 / 4 + 5 * 48 / 8]


def test_a_lost_thread_does_not_stop_the_others():
    done = train("hogwild", Springs([0.0] * 96), 3, batch=4, steps=8, fails=True, faults=Faults(crash={1: 0.004}))
    assert done.outcome.error is None and "rank 1 was lost" in done.outcome.notes[0]
    assert [len(event_log.losses) for event_log in done.outcome.event_logs[::2]] == [8, 8]
    assert done.outcome.results[0] is not None and done.outcome.results[2] is not None


@pytest.mark.slow
def test_it_learns_sparse_rows(run):
    workload = problem(rows=4096, features=500, dtype=np.float32)
    done = train("hogwild", workload, 2, {"learning_rate": 1.0}, batch=64, steps=200, run=run)
    assert workload.evaluate(done.shipped).accuracy > 0.8


def test_under_one_lock_no_addition_is_lost():
    locked, free = (train("hogwild", Pull(), 4, {"locked": one}, batch=4, steps=24) for one in (True, False))
    assert not any(measured(locked, "lost")) and any(measured(free, "lost"))


def test_a_lock_and_atomic_additions_together_are_refused_with_a_reason():
    with pytest.raises(ValueError, match="choose either atomic or locked"):
        hogwild.check(2, 8, None, hogwild.Settings(atomic=True, locked=True))
