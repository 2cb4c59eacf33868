"""Delay: the largest stable rate is where a root of the characteristic polynomial leaves the unit circle."""

import numpy as np
import pytest

from theory.delay import largest_rate


@pytest.mark.parametrize("delay", [0, 1, 2, 3, 10, 30])
def test_just_below_the_largest_rate_all_roots_are_inside_the_unit_circle_and_just_above_one_is_not(delay):
    for factor, inside in ((0.999, True), (1.001, False)):
        polynomial = np.zeros(delay + 2)
        polynomial[0] += 1
        polynomial[1] -= 1
        polynomial[-1] += factor * largest_rate(delay)
        assert (np.abs(np.roots(polynomial)).max() < 1) == inside
