"""Seeds of what a solution must not know beforehand, so many that none is found by trying."""

from __future__ import annotations

import random
import secrets

from experiments.experiment import MOST_SEED

GRADING = 2**53  # a reader's browser keeps whole numbers below
BITS = 128


def grading_seed() -> int:
    """Return a seed from which all hidden cases of a grading are drawn."""
    return secrets.randbelow(GRADING)


def experiment_seed(dice: random.Random) -> int:
    """Return one of all seeds that an experiment may have."""
    return dice.randint(0, MOST_SEED)


def unguessable(dice: random.Random) -> int:
    """Return a seed for NumPy."""
    return dice.getrandbits(BITS)
