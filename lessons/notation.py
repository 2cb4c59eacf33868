"""Notation: a letter has one meaning in the formulas of all chapters, except where a chapter says otherwise.

`notation.toml` is the table. A chapter lists the letters that it uses in chapter.toml. In `[own]` it gives the meaning
of others, and of the few letters of the table that it needs for something else.
"""

import tomllib
from functools import cache
from pathlib import Path

import lessons


@cache
def letters() -> dict[str, str]:
    """Return {letter as TeX: meaning} for the book's letters."""
    return tomllib.loads(Path(__file__).with_name("notation.toml").read_text("utf-8"))["letters"]


def table() -> str:
    """Return the book's notation as a Markdown table.

    Each row has a letter, its meaning, and the chapters that define it or give it another meaning.
    """
    differing: dict[str, list[str]] = {}
    alone: dict[str, tuple[str, int]] = {}  # the first meaning of a letter that is not in the table
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
