"""What comes with a hand-in is shown, and neither obeyed nor computed."""

import pytest

from lessons import harmless

OBEYED = "\x00\x07\x08\x0b\r\x1b\x7f\x80\x9b\x9d\u061c\u200e\u202a\u202e\u2066\u2069\ud800\udc80"


def test_every_character_that_a_terminal_obeys_is_replaced_and_every_other_one_stays():
    assert harmless.visible(OBEYED) == harmless.INSTEAD * len(OBEYED)
    assert harmless.visible("two\n\tlines\r\nof naïve 日本語 ✓") == "two\n\tlines\nof naïve 日本語 ✓"


def test_a_name_is_one_line():
    assert harmless.line(" Ann\n\tSmith\x1b[2J ") == f"Ann Smith{harmless.INSTEAD}[2J"


@pytest.mark.parametrize(
    "formula", ["=1", "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=1", "a;=1", "a; +1", "a,@b", "a|-b", "\uff1d1"]
)
def test_no_cell_begins_with_a_formula_whichever_character_lines_are_split_at(formula):
    cell = harmless.cell(formula)
    for separator in ";,|":
        assert all(part.strip()[:1] not in {*"=+-@\uff1d"} for part in cell.split(separator)), cell


def test_a_name_that_is_no_formula_stays_as_it_is():
    for name in ("Ann Smith-Jones", "o'neil (2)", "2 = 2", "a@b.org"):
        assert harmless.cell(name) == name
