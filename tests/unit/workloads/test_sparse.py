"""Sparse rows: a problem with a known minimum, as crowded as one likes, whose descent is that of any workload."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from workloads import sparse
from workloads.shared_memory import Descent
from workloads.sparse import SparseSamples


def problem(dtype=np.float64, **settings):
    return sparse.build(sparse.Settings(**{"rows": 600, "features": 80, "nonzeros": 6} | settings), dtype)


def everything(workload):
    return workload.batch(np.arange(workload.samples))


def test_rows_have_length_one_and_no_feature_twice():
    target, indptr, index, values = problem(skew=1.0).data
    assert set(target) == {-1, 1}
    for a, b in pairwise(indptr):
        assert 1 <= b - a <= 6 and len(set(index[a:b])) == b - a
        assert np.square(values[a:b]).sum() == pytest.approx(1)


def test_the_mean_loss_of_all_rows_is_the_objective_with_its_penalty():
    workload = problem(l2=0.01)
    w = np.random.default_rng(0).standard_normal(80)
    loss, _ = workload.gradient(w, everything(workload))
    assert loss == pytest.approx(workload.objective(w), rel=1e-12)


def test_at_the_minimum_the_gradient_is_zero_and_the_gap_is_none():
    workload = problem(judged="gap")
    w, _ = workload.minimum
    _, g = workload.gradient(w, everything(workload))
    assert np.abs(g).max() < 1e-12
    assert workload.evaluate(w).loss == 0
    assert workload.evaluate(w + 0.1).loss > 1e-4 and workload.evaluate(workload.start()).loss > 0.1


def test_a_rows_gradient_is_zero_where_the_row_is():
    workload = problem(l2=0.01)
    _, indptr, index, _ = workload.data
    _, g = workload.gradient(np.ones(80), workload.batch(np.array([7])))
    assert set(np.flatnonzero(g)) == set(index[indptr[7] : indptr[8]])


def test_skew_makes_the_first_features_popular():
    shares = [np.mean(problem(skew=skew, rows=2000).data[2] < 8) for skew in (0.0, 1.0, 2.0)]
    assert shares[0] == pytest.approx(0.1, abs=0.02)
    assert shares[0] * 3 < shares[1] < shares[2]


def test_held_out_rows_obey_the_same_hidden_rule():
    workload = problem(rows=4000)
    assert workload.evaluate(workload.minimum[0]).accuracy > 0.85
    assert workload.evaluate(workload.start()).loss == pytest.approx(np.log(2))


@pytest.mark.parametrize("per_step", [1, 3, 8])
def test_the_gradient_of_a_step_on_its_coordinates_is_the_sum_of_its_rows_gradients(per_step):
    workload, w = problem(l2=0.01), np.random.default_rng(1).standard_normal(80)
    samples = SparseSamples(workload, np.arange(20, 20 + per_step))
    loss, g = samples.gradient(w[samples.coordinates])
    each, whole = workload.gradient(w, workload.batch(samples.indices))
    assert loss == pytest.approx(per_step * each, rel=1e-12)
    spread = np.zeros(80)
    spread[samples.coordinates] = g
    np.testing.assert_allclose(spread, per_step * whole, rtol=1e-12, atol=1e-13)
    assert SparseSamples(workload, samples.indices, dense=True).gradient(w)[1].tolist() == spread.tolist()


@pytest.mark.parametrize("per_step", [1, 4])
def test_a_step_says_what_it_touches(per_step):
    def descend(w, samples):
        v = samples.coordinates
        loss, g = samples.gradient(w[v])
        w.add(v, -0.3, g)
        return loss

    for part in Descent(problem(), np.arange(8), descend, None, (), per_step).parts():
        after = np.full(80, 0.5)
        part(after, False)
        assert set(np.flatnonzero(after != 0.5)) == set(part.where) == set(np.unique(part.where))


def test_what_cannot_be_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"at most 2000 features.* 5000.* judged"):
        problem(judged="gap", features=5000)
    with pytest.raises(ValueError, match="use at most 20000 rows"):
        problem(rows=10**6, nonzeros=10_000)
    for stages in (2, (1, 1)):
        with pytest.raises(ValueError, match=r"^sparse .*no layers.*digits"):
            problem().split(stages)
