"""Runs: a part of a gradient knows which of them it has."""

import numpy as np
import pytest

from algorithms.parts.segments import Segments


@pytest.mark.parametrize("part", [slice(0, 10), slice(3, 7), slice(4, 4), slice(5, 5), slice(9, 10), slice(0, 0)])
def test_a_part_of_a_vector_keeps_its_runs(part):
    owner = np.repeat([0, 1, 2], [4, 5, 1])
    runs, edges = Segments([4, 5, 1]).within(part, owner)
    assert edges[0] == 0 and edges[-1] == part.stop - part.start
    assert np.repeat(np.arange(3)[runs], np.diff(edges)).tolist() == owner[part].tolist()
