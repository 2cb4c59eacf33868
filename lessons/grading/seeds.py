"""Seeds of what a solution must not know beforehand."""

from __future__ import annotations

import random

BITS = 128  # nobody tries that many


def unguessable(dice: random.Random) -> int:
    """Return a seed for NumPy that nobody finds by trying."""
    return dice.getrandbits(BITS)
