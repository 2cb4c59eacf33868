"""Kernels of sparse problems: which become which, that they are gradients, and that atomic additions are."""

from __future__ import annotations

from threading import Thread

import numpy as np
import pytest

import kernels
from tests.contract.kernels.sparse_cases import hogwild

FEATURES = 20


def crowded(dtype=np.float64, rows=16):
    """Rows of three to five numbers in few coordinates: (w, rows, target, indptr, index, values, penalty)."""
    rng = np.random.default_rng(5)
    places = [rng.permutation(FEATURES)[: rng.integers(3, 6)].astype(np.int32) for _ in range(rows)]
    indptr = np.concatenate([[0], np.cumsum([len(p) for p in places])])
    target = np.where(rng.random(rows) < 0.5, -1, 1).astype(dtype)
    values = rng.uniform(0.5, 2, indptr[-1]).astype(dtype)
    w, penalty = rng.standard_normal(FEATURES).astype(dtype), rng.random(FEATURES).astype(dtype)
    return w, rng.permutation(rows), target, indptr, np.concatenate(places), values, penalty


def test_the_gradient_is_the_slope_of_the_loss():
    w, *data = crowded()
    g, spare = np.empty_like(w), np.empty_like(w)
    kernels.logistic(g, w, *data)
    for v in range(FEATURES):
        up, down = w.copy(), w.copy()
        up[v] += 1e-6
        down[v] -= 1e-6
        slope = (kernels.logistic(spare, up, *data) - kernels.logistic(spare, down, *data)) / 2e-6
        assert g[v] == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("examples", [1, 2, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_thread_is_mini_batch_sgd_with_the_sum_of_gradients_bit_for_bit(dtype, examples, atomic):
    w, rows, *data = crowded(dtype)
    mine, acc = w.copy(), np.zeros_like(w)
    total = kernels.hogwild(mine, acc, rows, *data, 0.3, examples, atomic)
    g, losses = np.empty_like(w), 0.0
    for first in range(0, len(rows), examples):
        losses += examples * kernels.logistic(g, w, rows[first : first + examples], *data)
        kernels.sgd(w, g, 0.3 * examples)
    assert np.array_equal(mine, w) and not acc.any()
    assert total == pytest.approx(losses, rel=1e-6)


@pytest.mark.parametrize("examples", [2, 3])
def test_several_examples_to_a_write_may_share_coordinates_and_the_last_write_may_have_fewer(examples):
    mine, rows, *data = crowded()
    args = np.zeros_like(mine), rows, *data, 0.3, examples, False
    other = mine.copy()
    kernels.hogwild(mine, *args)
    kernels.hogwild.module.reference(other, *args)
    np.testing.assert_allclose(mine, other, rtol=1e-12)


@pytest.mark.parametrize("atomic", [False, True])
def test_svrg_steps_down_the_corrected_gradient(atomic):
    u, rows, *data = crowded()
    anchor, slope, acc = u + 0.1, np.linspace(-1, 1, FEATURES), np.zeros_like(u)
    mine, there, here = u.copy(), np.empty_like(u), np.empty_like(u)
    kernels.svrg(mine, acc, rows, *data, anchor, slope, 0.3, atomic)
    for k in range(len(rows)):
        kernels.logistic(here, u, rows[k : k + 1], *data)
        kernels.logistic(there, anchor, rows[k : k + 1], *data)
        kernels.sgd(u, (here - there) + slope, 0.3)
    np.testing.assert_allclose(mine, u, rtol=1e-13)
    assert not acc.any()


def test_margins_beyond_all_bounds_are_no_overflow_and_what_is_no_number_is_seen():
    args = hogwild(1, False)(np.random.default_rng(0), 30, np.float32)
    for start, finite in ((1e6, True), (np.nan, False)):
        args[0][:] = start
        args[7][:] = 0  # no penalty
        assert np.isfinite(kernels.hogwild(*args)) == finite


def test_of_atomic_additions_by_several_threads_at_once_none_is_lost():
    w, g = np.zeros(3), np.full(3, -1.0)
    kernels.descend_atomic(w, g, 1.0)
    w[:] = 0

    def descend():
        for _ in range(20_000):
            kernels.descend_atomic(w, g, 1.0)

    threads = [Thread(target=descend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert w.tolist() == [80_000] * 3
