"""Sparse rows: a problem with a known minimum, as crowded as one likes, whose descent is that of any workload."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from workloads import sparse
from workloads.shared_memory import SampleDescent


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


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("examples", [1, 3])
@pytest.mark.parametrize("atomic", [False, True])
def test_its_compiled_descent_is_the_descent_of_any_workload(anchored, examples, atomic):
    if anchored and examples > 1:
        pytest.skip("with an anchor every row is a step")
    workload, rng = problem(l2=0.01), np.random.default_rng(1)
    mine, indices = rng.standard_normal(80), np.arange(20, 41)
    anchor = tuple(rng.standard_normal((2, 80))) if anchored else None
    other = mine.copy()
    total = workload.descent(indices, 0.3, examples, anchor)(mine, atomic)
    assert total == pytest.approx(SampleDescent(workload, indices, 0.3, examples, anchor)(other, atomic), rel=1e-12)
    np.testing.assert_allclose(mine, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("examples", [1, 4])
def test_a_step_says_what_it_touches(examples):
    workload = problem()
    for part in workload.descent(np.arange(8), 0.3, examples).parts():
        before = np.full(80, 0.5)
        after = before.copy()
        part(after, False)
        assert set(np.flatnonzero(after != before)) == set(part.where) == set(np.unique(part.where))


def test_what_cannot_be_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=r"looked for among at most 2000 features, not 5000; use judged"):
        problem(judged="gap", features=5000)
    with pytest.raises(ValueError, match="use at most 20000 rows"):
        problem(rows=10**6, nonzeros=10_000)
    for stages in (2, (1, 1)):
        with pytest.raises(ValueError, match=r"^sparse is one layer, not to be cut in stages; use digits"):
            problem().split(stages)
