"""Figures: where a chapter has them, how they give their rows, and the words in which claims compare rows."""

import pytest

import lessons
from lessons.figure import figure, is_falling, is_rising, matching, ratio, value

ROWS = [{"method": method, "workers": n, "loss": n * price} for method, price in (("a", 1), ("b", 3)) for n in (1, 4)]


@pytest.mark.parametrize("chapter", lessons.CHAPTERS)
def test_a_chapter_declares_the_figures_of_its_file_or_of_the_files_of_its_folder(chapter):
    named = [name.partition(".")[2] for name in lessons.chapter(chapter).figure_questions]
    assert named == [*lessons.figures(chapter)] and len(named) >= 5


def test_a_figure_may_yield_its_rows_or_return_them():
    def yields(run):
        yield from ROWS

    ask = figure("?", source="nobody", claims={})
    assert ask(yields).rows(None) == ask(lambda run: ROWS).rows(None) == ROWS


def test_a_ratio_is_of_the_two_rows_that_differ_in_what_is_given_as_a_pair():
    assert ratio(ROWS, "loss", method=("b", "a"), workers=4) == 3
    assert ratio(ROWS, "loss", method="a", workers=(1, 4)) == 1 / 4
    assert ratio(ROWS, "loss", method=("b", "a"), workers=(4, 1)) == 12


def test_a_value_is_that_of_one_row_alone():
    assert value(ROWS, "loss", method="b", workers=4) == 12 and len(matching(ROWS, method="b")) == 2
    for where in ({"method": "b"}, {"method": "c"}):
        with pytest.raises(ValueError, match="expected one"):
            value(ROWS, "loss", **where)


def test_values_rise_or_fall_only_if_no_two_neighbours_are_equal():
    assert is_rising([1, 2, 4]) and is_falling([4, 2, 1])
    assert not is_rising([1, 1, 2]) and not is_falling([2, 1, 1]) and not is_rising([1, float("nan")])
