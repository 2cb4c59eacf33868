"""Spirals: as hard as asked for, and the same every time."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from workloads import spirals
from workloads.batches import Batches


def accuracy(steps, **knobs):
    workload = spirals.build(spirals.Settings(**knobs))
    w, batches = workload.start(0), Batches(workload.samples, 32)
    for _ in range(steps):
        _, g = workload.gradient(w, workload.batch(next(batches)))
        kernels.sgd(w, g, 0.3)
    return workload.evaluate(w).accuracy


def test_points_lie_on_their_arm():
    workload = spirals.build(spirals.Settings(noise=0, turns=2, classes=3), np.float64)
    r, angle = np.hypot(*workload.x.T), np.arctan2(workload.x[:, 1], workload.x[:, 0])
    turns_off = (angle / (2 * np.pi) - 2 * r - workload.target / 3 + 0.5) % 1 - 0.5
    np.testing.assert_allclose(turns_off, 0, atol=1e-9)


def test_a_fifth_is_held_out_and_the_points_are_the_same_every_time():
    a, b = (spirals.build(spirals.Settings(points=1000)) for _ in range(2))
    assert (a.samples, len(a.held_out[0])) == (800, 200)
    np.testing.assert_array_equal(a.x, b.x)


def test_an_mlp_tells_the_arms_apart_where_a_straight_line_cannot():
    assert accuracy(1500) > 0.9
    assert accuracy(1500, hidden="") < 0.6


@pytest.mark.parametrize("knobs", [{"classes": 2}, {"classes": 20, "noise": 1.0}, {"points": 100}, {"turns": 5.0}])
def test_every_allowed_spiral_can_be_built(knobs):
    workload = spirals.build(spirals.Settings(**knobs))
    assert np.isfinite(workload.evaluate(workload.start(0)).loss)
