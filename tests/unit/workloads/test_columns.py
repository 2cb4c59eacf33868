"""Columns: what is a number, what is a word, and what is said of them."""

import numpy as np
import pytest

from workloads import columns
from workloads.columns import Unusable


def read(*cells, name="x", commas=True):
    return columns.read(name, cells, range(1, len(cells) + 1), commas)


def test_cells_without_a_word_are_a_word_of_their_own():
    made = read("cat", "?", "", "dog")
    assert made.words == ("?", "cat", "dog") and made.numbers.tolist() == [1, 0, 0, 2] and not made.gap


@pytest.mark.parametrize("absent", ["", "?", "NA", "n/a", "NaN", "null", "None", "-", "1e400"])
def test_a_column_of_few_numbers_and_many_missing_cells_has_numbers(absent):
    made = read("1.5", absent, absent, absent, "2")
    assert not made.words and np.isnan(made.numbers).sum() == 3 and made.gap.startswith("line 2: x is")


def test_a_word_that_elsewhere_marks_missing_cells_is_a_word_among_words():
    assert read("none", "mild", "none", "severe").words == ("mild", "none", "severe")


@pytest.mark.parametrize("cells", [["nan"] * 4, ["1e400", "nan", "inf", ""]])
def test_a_column_without_any_number_that_counts_is_left_out_with_its_reason(cells):
    with pytest.raises(Unusable, match=r"x was left out: no cell is a number of at most 1e\+100; one is '"):
        read(*cells)


@pytest.mark.parametrize(
    ("cells", "numbers", "words"),
    [
        (("4%", "51 %", "-2.5%"), [4, 51, -2.5], "without %"),
        (("$4", "$1,500", "$2.50"), [4, 1500, 2.5], "without $"),
        (("3 €", "4.5€", "5 €"), [3, 4.5, 5], "without €"),
        (("1,858.50", "12.5", "1,000,000"), [1858.5, 12.5, 1e6], "without commas between thousands"),
        (("1,858", "12", ""), [1858, 12, np.nan], "without commas between thousands"),
    ],
)
def test_shared_units_and_commas_between_thousands_are_read_and_said(cells, numbers, words):
    made = read(*cells)
    np.testing.assert_array_equal(made.numbers, numbers)
    assert words in made.notes[0] and repr(cells[0]) in made.notes[0]  # the first, whatever the order of a set


@pytest.mark.parametrize("cells", [("4%", "0.5", "6%"), ("$4", "5 €", "$6"), ("1,85", "2,50", "3,75")])
def test_units_that_differ_and_commas_that_may_be_decimal_are_not_guessed_at(cells):
    assert read(*cells).words == tuple(sorted(cells))


def test_between_semicolons_a_comma_may_be_decimal_and_a_single_group_is_not_read():
    assert read("1,858", "2,500", "3,750", commas=False).words
    assert read("1,858.5", "2,500", "3,750", commas=False).numbers.tolist() == [1858.5, 2500, 3750]


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        ([0.7, 1.1, -9999, 0.3, -9999], "-9999 in 2 rows"),
        ([20, 25, 999, 31], "999 in 1 row"),
        ([2.5, -200, 3.1, -200, 8], "-200 in 2 rows"),
        ([900.5, 1010, 1100, -999.9], "-999.9 in 1 row"),
    ],
)
def test_a_value_far_from_the_rest_that_may_mark_missing_cells_gets_a_warning(cells, value):
    (note,) = read(*map(str, cells)).notes
    assert value in note and "far from the rest" in note


@pytest.mark.parametrize("cells", [[1, 2, 3, 4, 30], [0, 1, 0, 1], [-99, -98, -100, -97], [5, 5, 5], [97, 98, 99]])
def test_values_near_the_rest_or_large_ones_that_occur_once_get_no_warning(cells):
    assert not read(*map(str, cells)).notes
