"""Uncompiled: stand-ins for what kernels use of Numba, where it cannot be imported (`kernels/compiler.py`)."""

from collections.abc import Callable
from typing import Any

from numpy import int32 as int32


def njit(function: Callable | None = None, **options: Any) -> Callable:
    """Return the function itself, or a decorator that does."""
    return function or (lambda function: function)


register_jitable = njit


def intrinsic(function: Callable) -> Callable:
    """Return the function, which no reference calls."""
    return function


def overload(*args: Any, **options: Any) -> Callable:
    """Return a decorator that leaves the function of `args` as it is."""
    return lambda function: function


def is_jitted(function: Callable) -> bool:
    """Return False."""
    return False


def literal_unroll(values: tuple) -> tuple:
    """Return the tuple to loop over."""
    return values
