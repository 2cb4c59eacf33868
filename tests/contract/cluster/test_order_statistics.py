"""Stragglers: closed forms, golden numbers, and what the simulated cluster makes of the same laws."""

from functools import partial

import numpy as np
import pytest

from cluster import simulated
from cluster.devices import Device
from cluster.faults import JITTERS, Faults, Jitter
from cluster.network import NETWORKS
from tests.tiers import slow_except
from tests.training import Springs, pay, train
from theory import order_statistics

SECOND = Device(1e7, 1e30, 0.0)  # what a gradient of Springs takes; everything else takes nothing
EXPONENTIAL = JITTERS["exponential"]


def lognormal(sigma):
    return Jitter(lambda g, n: g.lognormal(-sigma * sigma / 2, sigma, n), "test")


# closed forms


def test_all_of_100_exponential_workers_take_five_times_as_long_as_one():
    assert order_statistics.harmonic(100) == pytest.approx(5.187, abs=5e-4)
    assert 100 / order_statistics.exponential(100, 100) == pytest.approx(19.3, abs=0.05)


@pytest.mark.parametrize(
    "n, backups, step, throughput",
    [(100, 0, 5.187, 19.3), (96, 4, 3.104, 30.9), (90, 10, 2.258, 39.9), (80, 20, 1.590, 50.3)],
)
def test_the_nth_of_n_plus_b_takes_h_of_all_minus_h_of_the_backups(n, backups, step, throughput):
    time = order_statistics.exponential(n + backups, n)
    assert time == pytest.approx(step, abs=5e-4)
    assert time == pytest.approx(order_statistics.harmonic(n + backups) - order_statistics.harmonic(backups), rel=1e-13)
    assert n / time == pytest.approx(throughput, abs=0.05)


def test_shifted_exponential_times_have_the_tail_of_the_exponential_part():
    assert order_statistics.exponential(100, 100, mean=0.2, shift=1.0) == pytest.approx(2.037, abs=5e-4)
    assert order_statistics.exponential(100, 96, mean=0.2, shift=1.0) == pytest.approx(1.621, abs=5e-4)


@pytest.mark.parametrize(
    "sigma, of_8, of_64", [(0.05, 1.07, 1.12), (0.1, 1.15, 1.26), (0.25, 1.40, 1.75), (0.5, 1.88, 2.93)]
)
def test_the_slowest_of_many_log_normal_times(sigma, of_8, of_64):
    assert order_statistics.lognormal(8, 8, sigma) == pytest.approx(of_8, abs=0.01)
    assert order_statistics.lognormal(64, 64, sigma) == pytest.approx(of_64, abs=0.01)


LAWS = {
    "exponential": (order_statistics.exponential, lambda g, size: g.exponential(1.0, size)),
    "shifted exponential": (
        partial(order_statistics.exponential, mean=0.2, shift=0.8),
        lambda g, size: 0.8 + g.exponential(0.2, size),
    ),
    "pareto": (partial(order_statistics.pareto, shape=4.0), lambda g, size: (g.pareto(4.0, size) + 1) * 0.75),
    "log-normal": (partial(order_statistics.lognormal, sigma=0.5), lambda g, size: g.lognormal(-0.125, 0.5, size)),
}
each_law = pytest.mark.parametrize("law", list(LAWS))


@each_law
def test_the_kth_of_n_is_what_sorted_draws_have(law):
    expected, draw = LAWS[law]
    draws = np.sort(draw(np.random.default_rng(3), (100_000, 6)), axis=1)
    error = draws.std(0) / 100_000**0.5
    assert (np.abs(draws.mean(0) - [expected(6, k) for k in range(1, 7)]) < 4 * error).all()
    assert (error < 0.01).all()


@each_law
def test_the_times_of_all_together_are_n_times_the_mean(law):
    expected, _ = LAWS[law]
    assert sum(expected(9, k) for k in range(1, 10)) == pytest.approx(9, rel=1e-9)


def test_backups_whose_stragglers_finish_lie_between_no_backups_and_those_that_all_begin_anew():
    for n, backups in ((3, 1), (96, 4), (80, 20)):
        finishing = order_statistics.backup_step(n + backups, backups)
        assert order_statistics.exponential(n + backups, n) < finishing < order_statistics.exponential(n, n)
    assert order_statistics.backup_step(100, 0) == pytest.approx(order_statistics.harmonic(100), rel=1e-12)
    # of two workers one computes anew; of the two under way either comes first, the stale one in vain
    assert order_statistics.backup_step(2, 1) == pytest.approx(1 / 2 + 1 / 2 * 1 / 2, rel=1e-12)
    assert order_statistics.backup_step(4096, 100) > 0


@pytest.mark.parametrize("n, k", [(4, 0), (4, 5), (0, 0)])
def test_more_than_there_are_cannot_be_waited_for(n, k):
    with pytest.raises(ValueError, match="wait for 1 to"):
        order_statistics.exponential(n, k)


# the simulated cluster


def steps_together(steps, comm):
    for comm.event_log.step in range(steps):
        pay(1e7)
        comm.split(0)  # a meeting that takes no time


def mean_step(ranks, jitter, steps):
    """Seconds that a step takes in which all wait for the slowest."""
    outcome = simulated.run(partial(steps_together, steps), ranks, network=NETWORKS["ideal"], device=SECOND,
                            faults=Faults(jitter=jitter, seed=1))  # fmt: skip
    assert outcome.error is None
    return outcome.trace().seconds() / steps


@pytest.mark.parametrize(
    "jitter, expected",
    slow_except(
        2,
        [
            (JITTERS["shifted exponential"], order_statistics.exponential(8, 8, mean=0.2, shift=0.8)),
            (JITTERS["exponential"], order_statistics.exponential(8, 8)),
            (JITTERS["hpc"], order_statistics.lognormal(8, 8, 0.03)),
            (JITTERS["cloud"], order_statistics.lognormal(8, 8, 0.15)),
            (lognormal(0.5), order_statistics.lognormal(8, 8, 0.5)),
        ],
    ),
    ids=["shifted exponential", "exponential", "hpc", "cloud", "sigma 0.5"],
)
def test_a_synchronous_step_takes_as_long_as_the_slowest_of_all(jitter, expected):
    assert mean_step(8, jitter, 10_000) == pytest.approx(expected, rel=0.01)


@pytest.mark.slow
def test_100_exponential_workers_take_h_100():
    assert mean_step(100, EXPONENTIAL, 1500) == pytest.approx(5.187, rel=0.02)


def step_times(workers, backups, steps, seed):
    where = {
        "network": NETWORKS["ideal"],
        "device": SECOND,
        "faults": Faults(jitter=EXPONENTIAL, seed=seed),
    }
    run = train("backup", Springs([0.0] * workers), workers, {"backups": backups}, steps=steps, **where)
    return np.diff([row[1] for row in run.outcome.event_logs[0].reports], prepend=0.0)


@pytest.mark.slow
@pytest.mark.parametrize("n, backups, expected", [(96, 4, 3.104), (90, 10, 2.258), (80, 20, 1.590)])
def test_the_first_step_with_backups_is_the_nth_of_n_plus_b(n, backups, expected):
    times = [step_times(n + backups, backups, 1, seed)[0] for seed in range(150)]
    assert np.mean(times) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("workers, backups", [(2, 1), (16, 3)])
def test_later_steps_take_a_little_longer_since_stragglers_finish_what_they_began(workers, backups):
    times = step_times(workers, backups, 3000 // workers + 400, 1)[20:]
    expected = order_statistics.backup_step(workers, backups)
    assert times.mean() == pytest.approx(expected, rel=0.02 + 2 * times.std() / expected / len(times) ** 0.5)
