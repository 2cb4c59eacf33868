"""No reference reads an output before it has written it: memory may hold NaN, and 0 times NaN is NaN."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import kernels
from tests.contract.kernels.test_implementations import NAMES, arguments, outcome

SIZE = 31


def calls(name: str) -> Iterator[tuple]:
    """Yield the arguments of the kernel's case, and the same with each of its switches turned."""
    usual = arguments(name, SIZE, np.float32)
    yield usual
    for place, value in enumerate(usual):
        if isinstance(value, bool):
            yield (*usual[:place], not value, *usual[place + 1 :])


def refilled(args: tuple, place: int, value: float) -> tuple:
    args = copy.deepcopy(args)
    args[place].fill(value)
    return args


def outputs(name: str, args: tuple) -> list[int]:
    """The places of the float arrays whose content before the call makes no difference to the compiled kernel."""
    cpu, found = getattr(kernels, name).module.cpu, []
    for place, value in enumerate(args):
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.size:
            ends = [outcome(cpu, refilled(args, place, before)) for before in (0.0, 0.5)]
            if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(*ends, strict=True)):
                found.append(place)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_does_not_read_what_an_output_held_before(name):
    reference = getattr(kernels, name).module.reference
    names = list(inspect.signature(reference).parameters)
    for args in calls(name):
        for place in outputs(name, args):
            zeros, nans = (outcome(reference, refilled(args, place, before)) for before in (0.0, np.nan))
            for a, b in zip(nans, zeros, strict=True):
                np.testing.assert_array_equal(a, b, names[place])


def test_outputs_are_found_among_the_arguments():
    assert outputs("sgd", arguments("sgd", SIZE, np.float32)) == []
    assert outputs("dense_forward", arguments("dense_forward", SIZE, np.float32)) == [0]
    add, replace = calls("dense_backward_weights")
    assert [outputs("dense_backward_weights", args) for args in (add, replace)] == [[], [0, 1]]
