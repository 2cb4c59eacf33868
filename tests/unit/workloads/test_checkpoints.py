"""Checkpoints: the newest model that was reported before a rank comes back."""

import numpy as np

from workloads.checkpoints import Checkpoints

FIRST = np.zeros(4)


def test_before_any_report_it_is_the_first_model():
    assert np.array_equal(Checkpoints(FIRST, [0.5]).read(0.5), FIRST)


def test_who_does_not_come_back_has_none():
    assert Checkpoints(FIRST, [0.5]).read(0.0) is None


def test_what_is_reported_later_is_not_in_it():
    saved = Checkpoints(FIRST, [0.5, 0.8])
    for seconds in (0.3, 0.5, 0.7, 0.9):
        saved.write(seconds, slice(None), np.full(4, seconds))
    assert saved.read(0.5).tolist() == [0.5] * 4 and saved.read(0.8).tolist() == [0.7] * 4


def test_parts_are_put_together():
    saved = Checkpoints(FIRST, [0.5])
    saved.write(0.1, slice(2), np.ones(2))
    saved.write(0.2, np.array([3]), np.full(1, 2.0))
    assert saved.read(0.5).tolist() == [1, 1, 0, 2]


def test_it_shares_no_memory_with_what_was_reported():
    w, saved = np.ones(4), Checkpoints(FIRST, [0.5])
    saved.write(0.1, slice(None), w)
    w[:] = 7
    assert saved.read(0.5).tolist() == [1] * 4
