"""Numbers of an independent program in float64: curvatures 1 and 4, centres 0 and 1, so the optimum is 0.8."""

import numpy as np
import pytest

import kernels
from algorithms.averaging.scaffold import Settings, check
from tests.training import Springs, train

RATE, H = 0.1, 5
CURVATURES, CENTRES = np.array([1.0, 4.0]), np.array([0.0, 1.0])


def rounds(count, workers=2, **settings):
    """x after each round."""
    springs = [
        Springs([CENTRES[rank % 2]] * workers, starts=[0.0], curvature=CURVATURES[rank % 2]) for rank in range(workers)
    ]
    settings = {"learning_rate": RATE, "period": H} | settings
    run = train("scaffold", lambda rank: springs[rank], workers, settings, steps=H * count)
    return np.ravel([row[4] for row in run.outcome.event_logs[0].reports])


def drifted(q):
    return float(q @ CENTRES / q.sum())


def test_fedavg_ends_where_the_formula_of_local_sgd_says():
    x = rounds(60, kind="average")
    assert x[:3] == pytest.approx([0.46112, 0.61519172, 0.666670933445], abs=1e-12)
    assert x[-1] == pytest.approx(drifted(1 - (1 - RATE * CURVATURES) ** H), abs=1e-9)
    assert x[-1] == pytest.approx(0.6925023465365121, abs=1e-9)


def test_fedprox_is_less_biased_and_not_unbiased():
    x = rounds(60, kind="prox", prox=1.0)
    stiffer = CURVATURES + 1
    assert x[:2] == pytest.approx([0.3875, 0.55971275], abs=1e-12)
    assert x[-1] == pytest.approx(drifted(CURVATURES / stiffer * (1 - (1 - RATE * stiffer) ** H)), abs=1e-9)
    assert x[-1] == pytest.approx(0.6974693113503005, abs=1e-9)


def test_scaffold_ends_at_the_optimum():
    x = rounds(60)
    assert x[:3] == pytest.approx([0.46112, 0.697709144, 0.78530540875556], abs=1e-12)
    assert x[9] == pytest.approx(0.7999517363242552, abs=1e-12) and x[-1] == pytest.approx(0.8, abs=1e-12)


def test_with_a_sample_of_the_workers_it_still_ends_at_the_optimum():
    assert rounds(400, workers=4, sampled=2)[-1] == pytest.approx(0.8, abs=1e-6)


def test_workers_that_are_not_sampled_compute_nothing_in_the_round():
    springs = [Springs([0.0] * 4, starts=[1.0]) for _ in range(4)]
    train("scaffold", lambda rank: springs[rank], 4, {"sampled": 1, "period": H}, steps=H * 8)
    taken = [len(one.seen.get(0.0, [])) for one in springs]
    assert sum(taken) == H * 8 and all(steps % H == 0 for steps in taken)


def test_the_mean_of_the_workers_variates_is_the_common_one_also_if_only_some_take_part(monkeypatch):
    kept, keep = [], kernels.keep
    monkeypatch.setattr(kernels, "keep", lambda x: kept.append(x) or keep(x))
    rounds(7, workers=4, sampled=3)
    commons, own = kept[2::6], kept[3::6]  # of each rank: y, p, c, c_i, c - c_i, and the change of c_i
    assert len(own) == 4 and np.ptp(own) > 0.1
    assert np.allclose(commons, np.mean(own), rtol=1e-12)


def test_where_curvatures_are_alike_the_corrections_cancel():
    """Then every worker drifts alike, and FedAvg has no bias to correct."""
    springs = [Springs([centre] * 2, starts=[0.0]) for centre in CENTRES]
    runs = [
        train("scaffold", lambda rank: springs[rank], 2, {"learning_rate": RATE, "period": H, "kind": kind}, steps=40)
        for kind in ("average", "scaffold")
    ]
    average, scaffold = (np.ravel([row[4] for row in run.outcome.event_logs[0].reports]) for run in runs)
    assert average == pytest.approx(scaffold, rel=1e-12)


def test_more_workers_than_there_are_cannot_be_sampled():
    with pytest.raises(ValueError, match="use at most 4"):
        check(4, 1, None, Settings(sampled=5))
