"""Which cases of a test are quick, and which wait for the slow tier."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest


def slow_except(quick: Collection | int, cases: Iterable) -> list:
    """Return `cases` as parameters for pytest, slow except those in `quick`, or except that many of the first.

    A case that is a tuple is one value for each parameter.
    """
    cases = list(cases)
    chosen = cases[:quick] if isinstance(quick, int) else quick
    marks = [() if case in chosen else pytest.mark.slow for case in cases]
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*each, marks=mark) for each, mark in zip(values, marks, strict=True)]
