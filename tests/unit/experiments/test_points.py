"""Points between bounds: they fill the ranges evenly, wherever a sweep ends."""

import numpy as np
import pytest

from experiments.study.points import Span, parse, points

UNIT = Span(0.0, 1.0, False)


@pytest.mark.parametrize("count", [8, 50, 300])
def test_points_leave_no_gap_much_larger_than_even_ones_would(count):
    values = sorted(point["x"] for point in points({"x": UNIT}, count))
    gaps = np.diff([0.0, *values, 1.0])
    assert gaps.max() < 2.5 / count  # random points leave a gap of about log(n) / n, which is 5.7 / n for 300


def test_each_of_several_ranges_is_filled_evenly_by_itself():
    found = points(dict.fromkeys("abc", UNIT), 60)
    for name in "abc":
        gaps = np.diff([0.0, *sorted(point[name] for point in found), 1.0])
        assert gaps.max() < 4 / 60


def test_two_ranges_are_filled_together_with_as_many_values_of_each_as_points():
    found = points({"x": UNIT, "y": UNIT}, 400)
    x, y = (np.array([point[name] for point in found]) for name in "xy")
    counts, *_ = np.histogram2d(x, y, bins=5, range=((0, 1), (0, 1)))
    assert counts.min() >= 12 and counts.max() <= 20  # 16 each; random ones vary by 4
    assert len({*x.tolist()}) > 330  # of three digits


def test_a_longer_sweep_contains_the_shorter_one_so_that_it_continues_it():
    spans = {"x": UNIT, "n": Span(1, 64, True)}
    assert points(spans, 40)[:10] == points(spans, 10)


def test_a_range_of_a_factor_of_ten_or_more_is_spread_over_its_logarithms():
    few, many = (np.array([point["x"] for point in points({"x": Span(1.0, top, False)}, 200)]) for top in (9.0, 10.0))
    assert np.median(few) == pytest.approx(5.0, rel=0.05) and np.median(many) == pytest.approx(10**0.5, rel=0.05)


def test_whole_numbers_reach_both_ends_and_never_beyond():
    assert {point["n"] for point in points({"n": Span(1, 4, True)}, 100)} == {1, 2, 3, 4}
    assert {point["n"] for point in points({"n": Span(1, 64, True)}, 2000)} >= {1, 2, 3, 32, 64}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("1..32", Span(1, 32, True)),
        ("1e-3..1", Span(0.001, 1, False)),
        ("0.1", None),
        ("2:3,5:1.5", None),
        ("1...8", None),
        ("1.2.3..4", None),
    ],
)
def test_a_range_is_two_numbers_with_two_dots(text, span):
    assert parse(text) == span


@pytest.mark.parametrize(("text", "words"), [("8..1", "smaller one first"), ("1..1", "no values")])
def test_bounds_that_are_none_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        parse(text)
