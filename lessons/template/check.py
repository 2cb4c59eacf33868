"""Judge the function of this chapter's exercise."""

import random

from lessons.template.exercise import TARGETS  # noqa: F401  (shown with the report)

POINTS = {"it doubles": 1}


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    x = random.Random(seed).randint(1, 99)
    with solution.attempt() as attempt:
        found = attempt.call("double", x)
    yield "it doubles", found == 2 * x, f"double({x}) is {found}"
