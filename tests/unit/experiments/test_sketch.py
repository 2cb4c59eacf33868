"""Sketches in the terminal: curves as a line of signs."""

import numpy as np

from experiments.cli.sketch import sparkline


def test_a_curve_is_as_wide_as_it_may_be_and_no_wider_than_its_values():
    assert [len(sparkline(np.arange(count, dtype=float), 8)) for count in (0, 1, 7, 8, 100)] == [0, 1, 7, 8, 8]
