"""Uncompiled: stand-ins for the parts of Numba that kernels use, where it is missing (`kernels/compiler.py`)."""

from collections.abc import Callable
from typing import Any

from numpy import int32 as int32


def njit(function: Callable | None = None, **options: Any) -> Callable:
    """Return `function` unchanged or, if it is None, a decorator that does so."""
    return function or (lambda function: function)


register_jitable = njit


def intrinsic(function: Callable) -> Callable:
    """Return the function unchanged; no reference calls it."""
    return function


def overload(*args: Any, **options: Any) -> Callable:
    """Return a decorator that overloads nothing."""
    return lambda function: function


def is_jitted(function: Callable) -> bool:
    """Return False: without Numba, nothing is compiled."""
    return False


def literal_unroll(values: tuple) -> tuple:
    """Return the tuple unchanged."""
    return values
