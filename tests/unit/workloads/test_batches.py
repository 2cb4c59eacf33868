"""Batches: N workers see together what one sees, nobody sees anything twice, and timing has no say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from workloads.batches import Batches


def stream(count, *args, **kwargs):
    batches = Batches(*args, **kwargs)
    return [next(batches).copy() for _ in range(count)]


@pytest.mark.parametrize("samples, batch, workers", [(96, 4, 3), (100, 8, 4), (17, 1, 5), (1437, 32, 8)])
def test_n_workers_with_batch_b_see_what_one_worker_with_n_b_sees(samples, batch, workers):
    steps = 3 * (samples // (batch * workers)) + 1
    one = stream(steps, samples, batch * workers, seed=5)
    many = [stream(steps, samples, batch, worker, workers, seed=5) for worker in range(workers)]
    for k in range(steps):
        np.testing.assert_array_equal(np.concatenate([own[k] for own in many]), one[k])


@pytest.mark.parametrize("shuffle", [True, False])
def test_within_an_epoch_no_sample_comes_twice(shuffle):
    per_epoch = 100 // (8 * 3)
    seen = np.concatenate([np.concatenate(stream(per_epoch, 100, 8, i, 3, shuffle=shuffle)) for i in range(3)])
    assert len(seen) == len(set(seen)) == per_epoch * 24


def test_every_epoch_is_shuffled_anew_and_by_the_seed_alone():
    a, b, c = stream(6, 40, 20, seed=1), stream(6, 40, 20, seed=1), stream(6, 40, 20, seed=2)
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)
    epochs = [np.concatenate(a[k : k + 2]) for k in (0, 2, 4)]
    for epoch in epochs:
        np.testing.assert_array_equal(np.sort(epoch), np.arange(40))
    assert not np.array_equal(epochs[0], epochs[1])


def test_without_shuffling_samples_come_in_their_order():
    np.testing.assert_array_equal(np.concatenate(stream(4, 8, 1, 0, 2, shuffle=False)), [0, 2, 4, 6])


def test_a_batch_larger_than_the_shard_is_refused_with_what_fits():
    with pytest.raises(ValueError, match=r"100 samples among 8 workers leave 12 each; use a batch of at most 12"):
        Batches(100, 13, 0, 8)
    assert len(next(Batches(100, 12, 7, 8))) == 12


@pytest.mark.parametrize("samples, batch, workers", [(1437, 1, 4096), (100, 13, 8), (100, 200, 8), (100, 200, 1)])
def test_what_a_refused_batch_is_told_can_be_done_and_works(samples, batch, workers):
    with pytest.raises(ValueError) as refused:
        Batches(samples, batch, 0, workers)
    advice = str(refused.value).partition("; use ")[2].replace(",", "")
    batches, fewer = re.findall(r"batch of at most (\d+)", advice), re.findall(r"at most (\d+) worker", advice)
    assert batches or fewer
    for most in map(int, batches):
        assert len(next(Batches(samples, most, 0, workers))) == most
    for most in map(int, fewer):
        assert len(next(Batches(samples, batch, 0, most))) == batch


def test_more_workers_than_samples_are_told_how_many_there_may_be():
    with pytest.raises(
        ValueError, match=r"1,437 samples among 4,096 workers leave 0 each; use at most 1,437 workers\.$"
    ):
        Batches(1437, 1, 0, 4096)


def test_where_both_are_too_large_both_are_named():
    with pytest.raises(ValueError, match=r"1 sample among 4 .*; use fewer workers and a smaller batch, whose product"):
        Batches(1, 7, 0, 4)
