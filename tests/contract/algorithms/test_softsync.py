import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train

PLAIN = {"learning_rate": 0.02, "modulate": False}


@pytest.mark.parametrize("splits", [1, 2, 4, 8])
def test_the_mean_staleness_is_n_minus_1_over_c(splits):
    workers = 8
    run = long(workers, PLAIN | {"splits": splits}, seconds=0.35, name="softsync", jitter=JITTERS["exponential"])
    (staleness,) = run.staleness[:1]
    assert len(staleness) > 1000
    assert np.mean(staleness[100:]) == pytest.approx((workers - 1) / (workers // splits), rel=0.04)


def test_split_among_all_and_not_modulated_it_is_asynchronous_sgd_bit_for_bit():
    soft = long(4, PLAIN | {"splits": 4}, name="softsync", steps=50)  # in a round robin: the order is the same
    assert served(soft) == served(long(4, {"learning_rate": 0.02}, steps=50))


def test_a_gradient_that_is_at_most_one_update_old_has_the_whole_step():
    modulated, plain = (long(2, PLAIN | {"splits": 2, "modulate": m}, name="softsync", steps=50) for m in (True, False))
    assert max(plain.staleness[0]) == 1
    assert served(modulated) == served(plain)


def test_modulated_it_is_stable_at_a_rate_at_which_it_would_diverge():
    rate = {"learning_rate": 0.5, "splits": 8}  # critical at a delay of 7: 0.209
    modulated, plain = (
        long(8, rate | {"modulate": m}, name="softsync", steps=300, jitter=JITTERS["cloud"]) for m in (True, False)
    )
    assert abs(served(modulated)[-1]) < 1e-3
    assert abs(served(plain)[-1]) > 1e3


class Slope(Springs):
    """As steep everywhere: what w has come down is the sum of all steps."""

    def gradient(self, w, batch):
        loss, g = super().gradient(w, batch)
        return loss, np.ones_like(g)


@pytest.mark.parametrize("splits", [2, 4, 8])
def test_the_steps_add_up_to_the_rate_over_each_ones_age(splits):
    workers, rate = 8, 0.1
    settings = {"learning_rate": rate, "splits": splits}
    where = {"faults": Faults(jitter=JITTERS["exponential"]), "steps": None, "budget": {"seconds": 0.02}}
    run = train("softsync", Slope([0.0] * workers), workers, settings, **where)
    c, (ages,) = workers // splits, run.staleness[:1]
    used = np.array(ages[: len(ages) // c * c - workers])  # at the end there are fewer workers, and pushes, to gather
    assert len(used) > 20 and max(used) > 1
    came_down = 1 - np.array([1.0, *served(run)])[len(used) // c]
    assert came_down == pytest.approx(rate / c * (1 / np.maximum(used[: len(used) // c * c], 1)).sum(), rel=1e-12)


def test_only_hard_answers_wait_for_the_slowest():
    def ends(hard):
        run = long(4, PLAIN | {"splits": 1, "hard": hard}, name="softsync", steps=50, slow={1: 3.0})
        return [event_log.losses[-1][2] for event_log in run.outcome.event_logs[1:]]

    assert max(ends(True)) < 1.1 * min(ends(True))
    assert max(ends(False)) > 2.5 * min(ends(False))


def test_hard_and_unsplit_no_gradient_is_old():
    run = long(4, PLAIN | {"splits": 1, "hard": True}, name="softsync", steps=30, jitter=JITTERS["cloud"])
    assert set(run.staleness[0]) == {0}


def test_when_workers_are_lost_the_rest_makes_the_updates():
    run = train(
        "softsync", Springs([0.0] * 4), 4, PLAIN | {"splits": 1, "hard": True}, steps=40, fails=True,
        faults=Faults(crash={2: 0.004, 4: 0.008}),
    )  # fmt: skip
    assert run.outcome.error is None and len(run.outcome.notes) == 2
    assert len(served(run)) == 40
