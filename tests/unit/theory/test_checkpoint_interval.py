"""How often to save: the closed form against failures played one by one, and the intervals against the best."""

import numpy as np
import pytest

from theory.checkpoint_interval import daly_interval, lost_share, seconds_to_save, young_interval


@pytest.mark.parametrize(("work", "saving", "between", "restart"), [(10, 1, 50, 20), (30, 2, 500, 0), (5, 5, 10, 3)])
def test_the_expected_time_is_the_mean_over_many_failures(work, saving, between, restart):
    uptimes = np.random.default_rng(1).exponential(between, 200_000)
    saved = (uptimes // (work + saving)).sum()
    assert (uptimes + restart).sum() / saved == pytest.approx(seconds_to_save(work, saving, between, restart), rel=0.01)


def test_without_failures_a_checkpoint_takes_its_work_and_itself():
    assert seconds_to_save(10.0, 1.0, 1e9, 100.0) == pytest.approx(11.0, rel=1e-6)


@pytest.mark.parametrize("saving", [0.1, 1.0, 10.0])
def test_youngs_interval_loses_at_most_a_hundredth_more_than_the_best_one(saving):
    every = np.geomspace(0.1, 1000, 2000)
    best = lost_share(every, saving, 500.0).min()
    assert lost_share(young_interval(saving, 500.0), saving, 500.0) < best + 0.01


@pytest.mark.parametrize("saving", [1.0, 10.0, 50.0])
def test_dalys_interval_is_closer_to_the_best_than_youngs(saving):
    every = np.geomspace(1, 1000, 20_000)
    best = every[lost_share(every, saving, 100.0).argmin()]
    assert abs(daly_interval(saving, 100.0) - best) < abs(young_interval(saving, 100.0) - best) / 3


def test_a_checkpoint_that_takes_longer_than_machines_live_is_due_after_one_life():
    assert daly_interval(25.0, 10.0) == 10.0


@pytest.mark.parametrize("times", [2, 4])
def test_an_interval_too_short_or_too_long_by_one_factor_costs_the_same_where_failures_are_rare(times):
    young = young_interval(1.0, 1e6)
    short, best, long = (lost_share(young * by, 1.0, 1e6) for by in (1 / times, 1, times))
    assert short / best == pytest.approx((times + 1 / times) / 2, rel=0.01)
    assert long == pytest.approx(short, rel=0.01)
