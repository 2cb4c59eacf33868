"""Notation: a letter has one meaning in the formulas of all chapters, except where a chapter says otherwise.

`notation.toml` is the table. A chapter lists the letters that it uses in chapter.toml, and gives in
`[own]` what it means by others, and by those few that it needs for something else.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

import lessons
from lessons.chapters import Chapter

CODE = re.compile(r"(?s)```.*?```|`[^`\n]*`")
FORMULA = re.compile(r"(?s)\$\$(.*?)\$\$|\$([^$]+)\$")
WORDS = re.compile(r"\\(?:text|operatorname|mathrm)\{[^}]*\}|\{[a-z]{2,}\}")  # the second is a parameter of a quiz
LETTER = re.compile(r"\\[A-Za-z]+|[A-Za-z]")
GREEK = r"\alpha \beta \gamma \delta \epsilon \eta \theta \lambda \mu \nu \rho \sigma \tau \phi \omega"


@cache
def letters() -> dict[str, str]:
    """Return the book's letters, as TeX, with their meanings."""
    return tomllib.loads(Path(__file__).with_name("notation.toml").read_text("utf-8"))["letters"]


def used(text: str) -> set[str]:
    """Return the Latin and Greek letters, as TeX, in the formulas of a text, without functions and words."""
    formulas = (WORDS.sub(" ", double or single) for double, single in FORMULA.findall(CODE.sub("", text)))
    found = {letter for formula in formulas for letter in LETTER.findall(formula)}
    return {letter for letter in found if len(letter) == 1 or letter in GREEK.split()}


def of_chapter(chapter: Chapter) -> set[str]:
    """Return the letters in the formulas of a chapter's text, lab sheet and quiz."""
    asked = (words for item in chapter.items for words in (item.ask, item.why, *(c.but for c in item.choices)))
    return used("\n\n".join((chapter.text(), chapter.lab(), *asked)))


def table() -> str:
    """Return the notation of the book as a table in Markdown: letter, meaning, and where a chapter differs."""
    differing: dict[str, list[str]] = {}
    alone: dict[str, tuple[str, int]] = {}  # the first meaning of a letter that the book has none for
    for one in map(lessons.chapter, lessons.CHAPTERS):
        for letter, meaning in one.front.own.items():
            if letter in letters() or letter in alone:
                differing.setdefault(letter, []).append(f"{one.number}: {meaning}")
            else:
                alone[letter] = meaning, one.number
    rows = [
        f"| ${letter}$ | {meaning} | {'; '.join(differing.pop(letter, ()))} |" for letter, meaning in letters().items()
    ]
    rows += [
        f"| ${letter}$ | {meaning} | {'; '.join([str(chapter), *differing.get(letter, ())])} |"
        for letter, (meaning, chapter) in sorted(alone.items())
    ]
    return "\n".join(["| letter | meaning | in chapter |", "|---|---|---|", *rows])
