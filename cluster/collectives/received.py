"""What a rank has received of a sum: added if it is of the same kind."""

from __future__ import annotations

from typing import Any

import kernels


def add(x: Any, received: Any) -> None:
    """Add `received` to `x` in place. Raises ValueError if they differ in type or length: so do the ranks' vectors."""
    if x.dtype != received.dtype:
        raise ValueError(f"ranks of a group reduce {x.dtype} and {received.dtype}; they must be alike.")
    kernels.add(x, received)  # which compares the lengths
