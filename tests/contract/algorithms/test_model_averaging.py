import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train


def averages(run):
    return [float(row[4][0]) for row in run.outcome.event_logs[0].reports]


class Slope(Springs):
    """The same gradient, 1, everywhere and for everybody."""

    def gradient(self, w, batch):
        return 0.0, np.ones_like(w)


def test_it_makes_the_steps_of_the_book():
    run = train("model_averaging", Springs([1.0, 3.0], starts=[0.0]), 2, {"learning_rate": 0.1, "period": 2}, steps=6)
    assert averages(run) == pytest.approx([0.38, 0.6878, 0.937118], abs=1e-12)


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_many_workers_get_no_further_in_a_period_than_one(workers):
    run = train("model_averaging", Slope([0.0] * workers), workers, {"learning_rate": 0.1, "period": 5}, steps=20)
    assert averages(run) == pytest.approx([0.5, 0.0, -0.5, -1.0])


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_averaging_identical_replicas_changes_nothing_bit_for_bit(workers):
    alike = ScalarChain(x=np.full(8, 1.3))
    pairwise = {"collective": "recursive_doubling"}  # sums of powers of two; the ring's 3 w and 5 w would be rounded
    many = train("model_averaging", alike, workers, {"learning_rate": 0.1, "period": 3}, steps=10, **pairwise)
    alone = train("sgd", alike, 1, {"learning_rate": 0.1}, steps=10)
    assert np.array_equal(many.shipped, alone.shipped)


def test_with_adam_averaging_in_every_step_is_not_synchronous_training():
    def trained(name, rule):
        return train(name, ScalarChain(), 4, {"update": rule, "learning_rate": 0.05} | period[name], steps=20).models[0]

    period = {"model_averaging": {"period": 1}, "sync_sgd": {}}
    assert np.allclose(trained("model_averaging", "momentum"), trained("sync_sgd", "momentum"), rtol=1e-12, atol=0)
    for rule in ("adagrad", "adam"):
        assert not np.allclose(trained("model_averaging", rule), trained("sync_sgd", rule), rtol=1e-3)


def test_on_equal_bowls_velocities_may_be_kept_or_averaged_but_not_emptied():
    def trained(state, curvatures):
        springs = [Springs([1.0, 3.0], starts=[0.0], curvature=h) for h in curvatures]
        settings = {"learning_rate": 0.05, "period": 3, "update": "momentum", "state": state}
        return train("model_averaging", springs.__getitem__, 2, settings, steps=12).shipped

    equal = [trained(state, (1.0, 1.0)) for state in ("keep", "average", "reset")]
    assert equal[0] == pytest.approx(equal[1], rel=1e-12)
    assert equal[0] != pytest.approx(equal[2], rel=1e-2)
    assert trained("keep", (1.0, 0.2)) != pytest.approx(trained("average", (1.0, 0.2)), rel=1e-3)


def test_adam_forgets_its_count_of_steps_with_its_moments():
    def first_steps(state):
        springs = Springs([0.0])
        settings = {"learning_rate": 0.125, "period": 2, "update": "adam", "state": state}
        train("model_averaging", springs, 1, settings, steps=7)
        return -np.diff(np.ravel(springs.seen[0.0]))[::2]

    assert first_steps("reset") == pytest.approx([0.125] * 3)  # as the first step of Adam always is
    assert max(first_steps("keep")[1:]) < 0.124
