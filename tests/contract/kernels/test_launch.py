"""Launching: sizes of grids, and arrays that do not belong in one call."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.launch import MAX_BLOCKS, THREADS, grid, over


def test_an_empty_array_still_launches_one_block():
    assert grid(0) == 1


def test_a_grid_has_a_thread_for_every_element_until_it_is_large_enough():
    assert [grid(n) for n in (1, THREADS, THREADS + 1)] == [1, 1, 2]
    assert grid(10**9) == MAX_BLOCKS


def test_arrays_of_different_shapes_are_refused_with_their_shapes():
    with pytest.raises(ValueError, match=r"\(5,\) and \(4,\)"):
        over(np.zeros(5), np.zeros(4))
