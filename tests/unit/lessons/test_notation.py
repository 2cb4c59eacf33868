"""Notation: a letter has one meaning in the book, and a chapter declares where it differs."""

import re

import pytest

import lessons
from lessons import notation
from lessons.chapters import Chapter

CODE = re.compile(r"(?s)```.*?```|`[^`\n]*`")
FORMULA = re.compile(r"(?s)\$\$(.*?)\$\$|\$([^$]+)\$")
WORDS = re.compile(r"\\(?:text|operatorname|mathrm)\{[^}]*\}|\{[a-z]{2,}\}")  # the second is a parameter of a quiz
LETTER = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
GREEK = r"\alpha \beta \gamma \delta \epsilon \eta \theta \kappa \ell \lambda \mu \nu \rho \sigma \tau \phi \omega"
each = pytest.mark.parametrize("name", [one.name for one in lessons.written_chapters()])


def used(text: str) -> set[str]:
    """Return the Latin and Greek letters, as TeX, in the formulas of a text, without functions and words."""
    formulas = (WORDS.sub(" ", double or single) for double, single in FORMULA.findall(CODE.sub("", text)))
    found = {letter for formula in formulas for letter in LETTER.findall(formula)}
    return {letter for letter in found if len(letter) == 1 or letter in GREEK.split()}


def letters_of(chapter: Chapter) -> set[str]:
    """Return the letters in the formulas of a chapter's text, lab sheet and quiz."""
    asked = (words for item in chapter.items for words in (item.ask, item.why, *(c.but for c in item.choices)))
    return used("\n\n".join((chapter.text(), chapter.lab(), *asked)))


@each
def test_a_chapter_declares_the_letters_of_its_formulas_and_no_others(name):
    chapter = lessons.chapter(name)
    front, table = chapter.front, notation.letters()
    assert set(front.letters) <= set(table), "a letter that is not in the table is the chapter's own: give its meaning"
    assert not set(front.letters) & set(front.own), "one letter, one meaning in a chapter"
    assert letters_of(chapter) == {*front.letters, *front.own}
    assert all(meaning != table.get(letter) for letter, meaning in front.own.items())


def test_each_letter_of_the_table_is_used_in_its_sense():
    fronts = [one.front for one in lessons.written_chapters()]
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
    assert used(text) == letters


def test_the_table_says_in_which_chapter_a_letter_means_something_else():
    rows = {line.split(" | ")[0].strip("| "): line for line in notation.table().splitlines()}
    assert "workers |  |" in rows["$N$"]
    assert f"{lessons.chapter('averaging').number}: the centre" in rows["$c$"]
    assert rows["$r$"] == f"| $r$ | share of all pushes | {lessons.chapter('staleness').number} |"
    assert all(line.split(" | ")[1].strip() for line in rows.values() if "---" not in line)
