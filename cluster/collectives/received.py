"""What a rank has received of a sum: added if it is of the same kind."""

from __future__ import annotations

from typing import Any

import kernels


def add(x: Any, received: Any) -> None:
    """Add `received` to `x` in place. Raises ValueError if they differ in length or type: so do the ranks' vectors."""
    if x.dtype != received.dtype or len(x) != len(received):
        kinds = [f"{len(piece)} numbers ({piece.dtype})" for piece in (x, received)]
        raise ValueError(f"ranks of a group reduce pieces of {kinds[0]} and of {kinds[1]}; they must be alike.")
    kernels.add(x, received)
