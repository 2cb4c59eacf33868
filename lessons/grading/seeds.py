"""Draw seeds for what a solution must not know in advance, from a range too large to search."""

import random
import secrets

from experiments.specification.experiment import MOST_SEED

GRADING = 2**53  # browsers represent integers below this exactly
BITS = 128


def grading_seed() -> int:
    """Return a random seed that determines all hidden cases of one grading."""
    return secrets.randbelow(GRADING)


def experiment_seed(dice: random.Random) -> int:
    """Return a random seed from the range that an experiment allows."""
    return dice.randint(0, MOST_SEED)


def unguessable(dice: random.Random) -> int:
    """Return a random seed of BITS bits for NumPy."""
    return dice.getrandbits(BITS)
