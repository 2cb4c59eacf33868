"""Summands: the parts of a sum that ranks send to each other, with a check that all ranks want the same sum."""

from typing import Any

import kernels


def summand(x: Any, scale: float) -> Any:
    """Return the message in which `x` is sent. For a mean, `x` is wrapped in a tuple, a mark that costs no bytes."""
    return x if scale == 1.0 else (x,)


def add(x: Any, received: Any, scale: float) -> None:
    """Add a `received` summand to `x` in place.

    Raise ValueError if they differ in type or length, or if only one of them belongs to a mean.
    """
    of_mean = isinstance(received, tuple)
    if of_mean != (scale != 1.0):
        raise ValueError(
            "mismatched all-reduce: some ranks of the group ask for a sum, others for a mean; use the same op on every "
            "rank."
        )
    if of_mean:
        (received,) = received
    if x.dtype != received.dtype:
        raise ValueError(
            f"mismatched all-reduce: ranks of the group reduce {x.dtype} and {received.dtype}; use the same type on "
            "every rank."
        )
    kernels.add(x, received)  # compares the lengths
