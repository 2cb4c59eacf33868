"""A claim has a margin if it holds for seeds that lie farther apart than the recorded ones."""

import pytest

from lessons.figure import figure
from tests.margin import stretch, thin_claims

LOSSES = (0.8, 1.0, 1.25)


def seeds(**columns):
    """One row for each seed."""
    return [[dict(zip(columns, values, strict=True))] for values in zip(*columns.values(), strict=True)]


def test_a_claim_that_seeds_a_little_farther_apart_break_is_thin():
    claims = {"below 1.3": lambda rows: rows[0]["loss"] < 1.3, "below 2": lambda rows: rows[0]["loss"] < 2}
    shown = figure("?", source="nobody", claims=claims)(lambda run: [])
    assert thin_claims(shown, seeds(loss=LOSSES)) == ["below 1.3"]
    assert thin_claims(shown, seeds(loss=LOSSES), by=1) == []


def test_positive_numbers_are_stretched_by_factors_and_others_by_differences():
    [row] = stretch(seeds(loss=LOSSES, change=(-2.0, 0.0, 2.0)), 2, by=2)
    assert row == pytest.approx({"loss": 1.25**2, "change": 4.0})


def test_words_counts_and_values_that_two_seeds_share_stay_as_they_are():
    rows = seeds(method=("a", "a", "a"), steps=(3, 4, 5), rate=(0.1, 0.2, 0.2), loss=(1.0, 2.0, float("inf")))
    assert stretch(rows, 0, by=2) == rows[0]
