"""Every algorithm learns a real data set at its default settings."""

import numpy as np
import pytest

import algorithms
import workloads
from tests.contract.test_every_algorithm import course

DIGITS = 0.9  # held-out accuracy with the default settings, after `steps_to_learn` steps of 32 images at most


@pytest.mark.parametrize("name", algorithms.names())
def test_it_learns_to_read_digits(name):
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(**algorithms.find(name).model_defaults), np.dtype("float32"))
    budget = {"steps": algorithms.find(name).steps_to_learn, "target_loss": 0.15}  # most are there long before
    tried = workload.evaluate(course((name, {}), workload, 4, batch=32, budget=budget).shipped)
    assert tried.accuracy > DIGITS
    assert tried.loss < 0.5
