"""Arrays that do not belong in a call are refused in a sentence, or give the right results."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import kernels
from kernels.gpu import simulate_gpu
from kernels.shapes import shapes
from tests.contract.kernels.test_implementations import arguments, each_kernel, expect_same, outcome

SIZE = 12


def places(args: tuple) -> list[int]:
    return [place for place, x in enumerate(args) if isinstance(x, np.ndarray)]


def altered(args: tuple, where: int, change: Callable[[np.ndarray], np.ndarray]) -> tuple:
    return tuple(change(x) if place == where else copy.deepcopy(x) for place, x in enumerate(args))


def longer(name: str, args: tuple) -> Iterator[tuple[str, tuple]]:
    """Yield (which array is longer, arguments) for every axis of every array."""
    for where in places(args):
        if (name, where) == ("scatter_signs", 1):
            continue  # a longer one would name a position twice
        for axis in range(args[where].ndim):
            first = np.take(args[where], [0], axis)
            yield f"{where}, {axis}", altered(args, where, lambda x, a=axis, f=first: np.concatenate([x, f], a))


def refused(name: str, args: tuple, said: str = "") -> bool:
    """Return whether a kernel refuses the arguments with a sentence; expect the right results if it takes them."""
    usual = copy.deepcopy(args)
    try:
        actual = outcome(getattr(kernels, name), args)
    except ValueError as error:
        assert str(error).startswith(f"{name} cannot take arrays ") and "\n" not in str(error), said
        return True
    expected = outcome(getattr(kernels, name).module.reference, usual)
    expect_same(name, np.float32, actual, expected, said=said)
    return False


@each_kernel
def test_an_array_that_is_longer_than_the_rest_says_is_refused_or_changes_nothing(name):
    for which, args in longer(name, arguments(name, SIZE, np.float32)):
        usual = copy.deepcopy(args)
        if refused(name, args, which):
            with simulate_gpu(), pytest.raises(ValueError, match="must"):
                getattr(kernels, name).module.gpu(*usual)


@pytest.mark.slow
@each_kernel
def test_strided_and_transposed_arrays_are_refused_or_get_the_right_results(name):
    for layout in (lambda x: np.repeat(x, 2, -1)[..., ::2], np.asfortranarray):
        refused(name, tuple(layout(x) if isinstance(x, np.ndarray) else x for x in arguments(name, SIZE, np.float32)))


@pytest.mark.slow
@each_kernel
def test_whole_numbers_take_no_result_that_is_none_and_two_precisions_are_refused_or_right(name):
    args = arguments(name, SIZE, np.float32)
    wide = altered(args, 0, lambda x: x.astype(np.float64) if x.dtype.kind == "f" else x)
    refused(name, wide)
    if args[0].dtype.kind == "f" and name not in ("squared_norm", "dot"):  # which have no result to take
        assert refused(name, altered(args, 0, lambda x: x.astype(np.int64)))


def test_a_place_may_be_computed_from_others_or_be_longer():
    check = shapes("y (n // window), x (n), room (>= n)", "window")
    check(np.ones(2), np.ones(5), np.ones(6), 2)
    for y, x, room in ((3, 5, 6), (2, 6, 6), (2, 5, 4)):
        with pytest.raises(ValueError, match="must have the shapes y"):
            check(np.ones(y), np.ones(x), np.ones(room), 2)
    with pytest.raises(ValueError, match="must have the shapes y"):
        check(np.ones(2), np.ones((5, 1)), np.ones(6), 2)


def test_codes_and_positions_do_not_let_a_result_be_of_whole_numbers():
    check, places = shapes("out (d), codes (d), index (d)"), np.ones(3, np.int8)
    check(np.ones(3), places, places)
    with pytest.raises(ValueError, match="whole numbers"):
        check(np.ones(3, np.int64), places, places)
