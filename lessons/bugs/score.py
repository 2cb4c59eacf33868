"""The score of answers to *Find the bug*: one point for the mechanism and one for the line.

Answers are part of a reader's progress (lessons.progress). Their place is "bug", their chapter is BOOK, their item is
the mutant's name, and their parameters are {"asked": "mechanism"} or {"asked": "line"}. The first valid answer to each
question counts.
"""

from typing import Any

from lessons.bugs.mutant import Mutant, mutants
from lessons.progress import Answer, ReaderProgress, now

BOOK = "bugs"  # takes the place of a chapter
ASKED = ("mechanism", "line")
MOST = len(ASKED)  # points per mutant


def answer(mutant: Mutant, asked: str, guess: str | int) -> Answer:
    """Return the reader's `guess` as an Answer, with the current time and whether it is right."""
    return Answer(
        chapter=BOOK, item=mutant.name, parameters={"asked": asked}, guess=guess, sure=1,
        right=_right(mutant, asked, guess), place="bug", at=now(),
    )  # fmt: skip


def first_answers(progress: ReaderProgress, mutant: Mutant) -> dict[str, str | int]:
    """Return the first valid answer to each question about a mutant. The keys are "mechanism" and "line"."""
    keys, lines = {mutant.mechanism, *mutant.distractors}, range(1, len(mutant.listing) + 1)
    allowed = {"mechanism": keys, "line": lines}
    found: dict[str, str | int] = {}
    for one in progress.of(BOOK, mutant.name, "bug"):
        asked = one.parameters.get("asked")
        if asked in allowed and one.guess in allowed[asked]:
            found.setdefault(asked, one.guess)
    return found


def points(mutant: Mutant, answers: dict[str, str | int]) -> int:
    return sum(_right(mutant, asked, guess) for asked, guess in answers.items())


def grade(progress: ReaderProgress) -> dict[str, Any]:
    """Return the student's name, the score out of 100, and the result for each mutant answered.

    A result has the answers given, the right ones and the points.
    """
    bugs = {}
    for mutant in mutants():
        if said := first_answers(progress, mutant):
            right = {"mechanism": mutant.mechanism, "lines": mutant.lines}
            bugs[mutant.name] = {"said": said, "answer": right, "points": points(mutant, said)}
    total, most = sum(one["points"] for one in bugs.values()), MOST * len(mutants())
    return {"student": progress.reader, "score": round(100 * total / most), "points": total, "of": most, "bugs": bugs}


def _right(mutant: Mutant, asked: str, guess: str | int) -> bool:
    return guess == mutant.mechanism if asked == "mechanism" else guess in mutant.lines
