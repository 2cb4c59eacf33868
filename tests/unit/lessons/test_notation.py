"""Notation: a letter has one meaning in the book, and a chapter declares where it differs."""

import pytest

import lessons
from lessons import notation

each = pytest.mark.parametrize("name", [one.name for one in lessons.written()])


@each
def test_a_chapter_declares_the_letters_of_its_formulas_and_no_others(name):
    chapter = lessons.chapter(name)
    front, table = chapter.front, notation.letters()
    assert set(front.letters) <= set(table), "a letter that is not in the table is the chapter's own: give its meaning"
    assert not set(front.letters) & set(front.own), "one letter, one meaning in a chapter"
    assert notation.of_chapter(chapter) == {*front.letters, *front.own}
    assert all(meaning != table.get(letter) for letter, meaning in front.own.items())


def test_each_letter_of_the_table_is_used_in_its_sense():
    fronts = [one.front for one in lessons.written()]
    assert [letter for letter in notation.letters() if not any(letter in front.letters for front in fronts)] == []
    assert len(set(notation.letters().values())) == len(notation.letters())


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        (r"$\frac{S-1}{M+S-1}$ and $$\eta\, h$$", {"S", "M", "\\eta", "h"}),
        (r"$$\text{time of } N + \ln 2 + \sum_i w_i$$", {"N", "i", "w"}),
        ("`$x$` costs\n```\n$y$\n```\nnothing", set()),
        ("$3 + {longer}$, $H_{{workers}}$", {"H"}),
    ],
)
def test_letters_are_those_of_formulas_without_words_functions_and_code(text, letters):
    assert notation.used(text) == letters


def test_the_table_says_in_which_chapter_a_letter_means_something_else():
    rows = {line.split(" | ")[0].strip("| "): line for line in notation.table().splitlines()}
    assert "workers |  |" in rows["$N$"]
    assert f"{lessons.chapter('averaging').number}: the centre" in rows["$c$"]
    assert rows["$r$"] == f"| $r$ | share of all pushes | {lessons.chapter('staleness').number} |"
    assert all(line.split(" | ")[1].strip() for line in rows.values() if "---" not in line)
