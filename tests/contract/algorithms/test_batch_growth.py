import numpy as np
import pytest

from algorithms.synchronous import batch_growth
from tests.training import ScalarChain, noisy_bowl, train

X = np.linspace(0.6, 1.2, 48)


def grown(workers=1, steps=48, batch=1, x=X, **settings):
    return train("batch_growth", ScalarChain(x=x), workers, settings, batch=batch, steps=steps)


def batch_sizes(run):
    return [row[3] for row in run.outcome.event_logs[0].measures if row[2] == "batch size"]


def test_the_batch_grows_at_each_milestone_and_updates_become_fewer():
    run = grown(2, batch=2, steps=48, factor=2, milestones="1,2")  # an epoch has 12 mini-batches of each worker
    assert batch_sizes(run) == [4] * 12 + [8] * 6 + [16] * 6
    assert run.staleness == [[0] * 24, []]


@pytest.mark.parametrize(
    ("schedule", "updates"), [("decay", 60), ("hybrid", 36), ("grow", 12 + 6 + 3 + 3), ("larger_rate", 6 + 16)]
)
def test_it_makes_as_many_updates_as_its_schedule_says(schedule, updates):
    more = {"larger_rate": {"largest": 3}}.get(schedule, {})
    run = grown(4, steps=60, factor=2, milestones="1,2,3", schedule=schedule, **more)
    assert len(run.staleness[0]) == updates
    s = batch_growth.Settings(factor=2, milestones="1,2,3", schedule=schedule, **more)
    assert batch_growth.updates(s, 60, 12) == updates


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_accumulated_mini_batches_are_one_large_batch(workers):
    batch = 8 // workers
    accumulated = grown(workers, 24, batch, schedule="larger_rate", factor=2, learning_rate=0.05)
    whole = train(
        "sync_sgd", ScalarChain(x=X), 1, {"update": "momentum", "learning_rate": 0.1}, batch=16, steps=12
    )  # fmt: skip
    assert np.allclose(accumulated.models, whole.models, rtol=1e-12)


def test_before_the_first_milestone_it_is_momentum_bit_for_bit():
    plain = train("momentum", ScalarChain(x=X), settings={"learning_rate": 0.05}, batch=2, steps=24)
    assert np.array_equal(grown(steps=24, batch=2, milestones="1").models, plain.models)


def test_decay_changes_the_rate_and_nothing_else():
    once = grown(steps=48, milestones="0.5", schedule="decay", factor=4, momentum=0).models[0]
    first = train("sgd", ScalarChain(x=X), settings={"learning_rate": 0.05}, steps=24).models[0]
    second = train("sgd", ScalarChain(w=first, x=np.roll(X, -24)), settings={"learning_rate": 0.0125}, steps=24)
    assert np.allclose(once, second.models[0], rtol=1e-13)


def test_a_smaller_rate_and_a_larger_batch_leave_the_same_noise():
    rate, factor, updates = 0.1, 5, 400
    spread = {}
    for schedule in ("decay", "grow"):
        settings = {"learning_rate": rate, "momentum": 0, "factor": factor, "milestones": "1e-9", "schedule": schedule}
        bowl = noisy_bowl(factor * updates, 500)
        run = train("batch_growth", bowl, 1, settings, steps=factor * updates)
        reports = [row[4] for row in run.outcome.event_logs[0].reports]
        spread[schedule] = np.square(reports[len(reports) // 4 :]).mean()
    assert spread["decay"] == pytest.approx(rate / factor / (2 - rate / factor), rel=0.05)  # the formula of SGD
    assert spread["grow"] == pytest.approx(
        rate / factor / (2 - rate), rel=0.05
    )  # equal where rate * curvature is small
    assert spread["grow"] == pytest.approx(spread["decay"], rel=0.1)
