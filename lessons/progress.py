"""Progress: a document of what one reader has done, shared by the workbench and the static book.

    {"lockstep": 1, "reader": "", "answers": [...], "passed": ["stragglers.elsewhere"],
     "places": {"stragglers": "what-waiting-costs"},
     "scores": {"stragglers": {"score": 83, "at": "...", "solution": "def server(...", "seed": 5, "digests": [...]}}}

Answers are only added, in order of time; an answer is identified by time, question and place. The last of `places` is
where the reader is. `book/progress.js` merges by the same rules, and a test compares the two.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, FiniteFloat, ValidationError

SCRIPT = Path(__file__).parent / "book" / "progress.js"
KEY = "lockstep-progress"  # in the browser's storage
LIMIT = 2_000_000  # bytes of a document: a reader who answers ten times a day fills it in two years
LONGEST = 50_000  # most characters of a stored solution; a tenth of that is usual
SURE = ("unsure", "fairly sure", "sure")
MEANING = {
    (True, 2): "You were sure, and you were right.",
    (True, 1): "You were fairly sure, and you were right.",
    (True, 0): "Right, but you were unsure: read why. You will see this question again tomorrow.",
    (False, 2): "You were sure, but wrong. Such answers teach you most: you will see this question first next time.",
    (False, 1): "You were fairly sure, but wrong. You will see this question again.",
    (False, 0): "Wrong, but you were right to be unsure. You will see this question again.",
}
"""What result and confidence mean together."""


def instant(value: Any) -> str:
    """Return a time in JavaScript's format, such as "2026-03-01T08:00:00.000Z". Times in this format sort as text."""
    if not isinstance(value, str | datetime):
        raise ValueError("a time is text such as 2026-03-01T08:00:00Z")
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    try:
        time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        raise ValueError("a time must be between the years 1 and 9999") from None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


Instant = Annotated[str, BeforeValidator(instant)]
Name = Annotated[str, Field(max_length=100)]
Words = Annotated[str, Field(max_length=500)]  # characters of a drawn value: a line of code, a sentence


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Answer(_Part):
    """One answer to one question of a quiz. `sure` is an index into SURE: 0, 1 or 2."""

    chapter: Name
    item: Name
    parameters: dict[Name, int | FiniteFloat | Words]
    guess: int | FiniteFloat | Name
    sure: Literal[0, 1, 2]
    right: bool
    place: Literal["predict", "quiz", "again", "bug"]
    at: Instant

    @property
    def question(self) -> tuple[str, str]:
        """The names of the chapter and of the item."""
        return self.chapter, self.item


class Score(_Part):
    """The best result of an exercise, out of 100, with the solution that earned it. A solution that is too long is not
    stored.

    `seed` is the seed of the hidden cases. `digests` identify the solution as it was graded, and its marks.
    """

    score: Annotated[int, Field(ge=0, le=100)]
    at: Instant
    solution: Annotated[str, Field(max_length=LONGEST)] = ""
    seed: Annotated[int, Field(ge=0)] | None = None
    digests: tuple[Name, Name] | None = None


class ReaderProgress(_Part):
    """Everything that one reader has done."""

    lockstep: Literal[1] = 1
    reader: Name = ""
    answers: tuple[Answer, ...] = ()
    passed: tuple[Name, ...] = ()
    places: dict[Name, Name] = {}
    scores: dict[Name, Score] = {}

    def text(self) -> str:
        return self.model_dump_json()

    def of(self, chapter: str, item: str, *places: str) -> tuple[Answer, ...]:
        """Return the answers to a question, oldest first. If `places` are given, only answers given there are
        returned.
        """
        return tuple(a for a in self.answers if a.question == (chapter, item) and (not places or a.place in places))

    def with_answer(self, answer: Answer) -> ReaderProgress:
        """Return the progress with one more answer. A prediction that has been answered counts as passed."""
        passed = (f"{answer.chapter}.{answer.item}",) if answer.place == "predict" else ()
        return merge(self, ReaderProgress(answers=(answer,), passed=passed))

    def with_skip(self, chapter: str, item: str) -> ReaderProgress:
        """Return the progress with a prediction that the reader has skipped. It counts as passed, but has no answer."""
        return merge(self, ReaderProgress(passed=(f"{chapter}.{item}",)))

    def with_grade(self, report: dict[str, Any], solution: str) -> ReaderProgress:
        """Return the progress with the score of `solution` from `report`. The score is stored only if it is the best so
        far for that exercise.
        """
        kept = {"score": report["score"], "at": now(), "seed": report["seed"]}
        if len(solution) <= LONGEST:
            kept |= {"solution": solution, "digests": (digest(solution), digest(marks(report)))}
        return merge(self, ReaderProgress(scores={report["chapter"]: Score.model_validate(kept)}))


EMPTY = ReaderProgress()


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def marks(report: dict[str, Any]) -> str:
    """Return the chapter, seed, score and marks of a report as JSON. These stay the same when a solution is graded
    again on the same hidden cases.
    """
    earned = [[mark["name"], mark["points"], mark["earned"]] for mark in report["marks"]]
    return json.dumps([report["chapter"], report["seed"], report["score"], earned])


def now() -> str:
    """Return the current time in the format of the documents."""
    return instant(datetime.now(UTC))


def merge(one: ReaderProgress, other: ReaderProgress) -> ReaderProgress:
    """Merge two documents: keep all answers, the best scores and all places. Places of `other` take precedence."""
    answers = {(a.at, a.question, a.place): a for a in (*other.answers, *one.answers)}
    scores = dict(one.scores)
    for chapter, score in other.scores.items():
        scores[chapter] = max(scores.get(chapter, score), score, key=lambda s: (s.score, s.at))
    return ReaderProgress(
        reader=other.reader or one.reader,
        answers=tuple(answers[key] for key in sorted(answers)),
        passed=tuple(sorted({*one.passed, *other.passed})),
        places={**{c: place for c, place in one.places.items() if c not in other.places}, **other.places},
        scores=scores,
    )


def read(text: str | bytes) -> ReaderProgress:
    """Return the document in `text`. Raise ValueError if it is invalid.

    Questions that this version of the book does not have are kept; `returning.valid_answers` leaves them out.
    """
    if len(text) > LIMIT:
        raise ValueError(
            f"the file has {len(text):,} bytes, but a progress file has at most {LIMIT:,}; choose another."
        )
    try:
        found = ReaderProgress.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(_sentence(error)) from None
    if "lockstep" not in found.model_fields_set:
        raise ValueError('this is not a progress file of Lockstep: it has no "lockstep"; export one under My work.')
    return merge(EMPTY, found)


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    where, given = ".".join(map(str, first["loc"])), str(first["input"])[:40]
    if first["type"] == "json_invalid":
        return "the file is not JSON; choose one that was exported under My work."
    if first["loc"] == ("lockstep",):
        return f"the file has version {given}, and this book reads version 1; use the book that wrote it."
    if not where:
        return 'this is not a progress file of Lockstep: it has no "lockstep"; export one under My work.'
    return f"{where} of the file is {given!r}: {first['msg'].removeprefix('Value error, ')}; export the file again."
