"""Digits are the real ones, and they are learned."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from workloads import digits
from workloads.batches import Batches


def test_digits_are_those_that_scikit_learn_gives():
    datasets = pytest.importorskip("sklearn.datasets")
    x, target = digits.digits()
    expected, labels = datasets.load_digits(return_X_y=True)
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(target, labels)


def test_all_images_are_used_once():
    workload = digits.build(digits.Settings(), np.float64)
    x = np.concatenate([workload.x, workload.held_out[0]])
    assert workload.samples == 1437
    assert len(workload.held_out[0]) == 360
    everything, _ = digits.digits()
    np.testing.assert_array_equal(np.sort(x.sum(1)), np.sort(everything.sum(1) / 16))
    assert x.min() == 0
    assert x.max() == 1


def test_every_class_is_in_both_parts():
    workload = digits.build(digits.Settings())
    for target in (workload.target, workload.held_out[1]):
        assert np.bincount(target).min() >= 0.07 * len(target)


@pytest.mark.parametrize(
    "model, activation",
    [("mlp", "relu"), ("mlp", "tanh"), ("residual", "relu"), ("residual", "tanh"), ("cnn", "relu"), ("cnn_bn", "relu")],
)
def test_every_model_learns_to_read(model, activation):
    workload = digits.build(digits.Settings(model=model, activation=activation))
    w, batches = workload.start(0), Batches(workload.samples, 32)
    for _ in range(600):
        _, g = workload.gradient(w, workload.batch(next(batches)))
        kernels.sgd(w, g, 0.1)
    assert workload.evaluate(w).accuracy > 0.92
