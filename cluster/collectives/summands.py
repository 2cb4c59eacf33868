"""Summands: what a rank sends of a sum so that another adds it, if both want the same."""

from __future__ import annotations

from typing import Any

import kernels


def summand(x: Any, scale: float) -> Any:
    """Return `x` as it is sent to be added: in a tuple where a mean is formed. That says so, and is no byte more."""
    return x if scale == 1.0 else (x,)


def add(x: Any, received: Any, scale: float) -> None:
    """Add a `received` summand to `x` in place.

    Raises ValueError if they differ in type or length, or one of them is for a mean: so do the ranks' vectors.
    """
    of_mean = isinstance(received, tuple)
    if of_mean != (scale != 1.0):
        raise ValueError("ranks of a group reduce to a sum and to a mean; they must be alike.")
    if of_mean:
        (received,) = received
    if x.dtype != received.dtype:
        raise ValueError(f"ranks of a group reduce {x.dtype} and {received.dtype}; they must be alike.")
    kernels.add(x, received)  # which compares the lengths
