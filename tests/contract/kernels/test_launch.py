"""Launching: sizes of grids, and arrays that do not belong in one call."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from kernels.gpu import Compiler
from kernels.launch import MAX_BLOCKS, THREADS, grid, over


def test_an_empty_array_still_launches_one_block():
    assert grid(0) == 1


def test_a_grid_has_a_thread_for_every_element_until_it_is_large_enough():
    assert [grid(n) for n in (1, THREADS, THREADS + 1)] == [1, 1, 2]
    assert grid(10**9) == MAX_BLOCKS


def test_arrays_of_different_shapes_are_refused_with_their_shapes():
    with pytest.raises(ValueError, match=r"\(5,\) and \(4,\)"):
        over(np.zeros(5), np.zeros(4))


def the_compiler():
    """Return `Compiler` on a stand-in for `numba.cuda`, which makes of a tensor its description."""
    return Compiler(SimpleNamespace(as_cuda_array=lambda x: dict(x.__cuda_array_interface__)))


def test_a_tensor_is_described_to_the_compiler_as_it_describes_itself():
    x = torch.arange(12, dtype=torch.float64).reshape(3, 4)
    for y in (x, x[1], x.T, x[:, 1:3], x.to(torch.uint8)):
        told, own = the_compiler()._argument(y), y.numpy().__array_interface__
        assert told["data"] == own["data"] and told["typestr"] == own["typestr"]
        assert (told["shape"], told["strides"]) == (own["shape"], own["strides"])


def test_a_tensor_is_described_once_and_its_memory_is_not_kept():
    compiler, x = the_compiler(), torch.ones(5)
    first = compiler._argument(x)
    assert compiler._argument(x[:]) is first and compiler._argument(x[1:]) is not first
    gone = weakref.ref(x)
    del x
    assert gone() is None


def test_numbers_and_empty_tensors_reach_the_compiler_as_they_are():
    empty = torch.empty(0)
    assert all(the_compiler()._argument(x) is x for x in (0.5, True, empty))
