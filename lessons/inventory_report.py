"""Compute statistics of the concept inventory from files of answers: the students' gains, and the quality of each
question.

Normalised gain is the gain as a share of the possible gain, (after - before) / (max - before). Hake (American Journal
of Physics 66, 64, 1998, doi:10.1119/1.18809) defines it for the means of a class; a student has one, too, unless all
answers were right before. The difficulty of a question is the share of sittings with the right answer. Its
discrimination is the point-biserial correlation between answering it correctly and the score on all *other* questions.
Below 0.2 the question says little; below 0 the question itself is probably wrong.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import correlation, fmean

from lessons import harmless, inventory
from lessons.inventory import ConceptQuestion, Sitting


@dataclass(frozen=True)
class Student:
    """The numbers of right answers of a student before and after the course, out of `most`. A number is None if the
    sitting is missing.
    """

    name: str
    before: int | None
    after: int | None
    most: int

    @property
    def gain(self) -> float | None:
        """The student's normalised gain, or None if a sitting is missing or no gain was possible."""
        if self.before is None or self.after is None:
            return None
        return normalised_gain(self.before, self.after, self.most)


def normalised_gain(before: float, after: float, most: float) -> float | None:
    """Return the gain as a fraction of the possible gain, or None if no gain was possible."""
    return None if before == most else (after - before) / (most - before)


@dataclass(frozen=True)
class Statistics:
    """Statistics of a question: its difficulty before and after the course, its discrimination over all sittings, and
    the number of times that each misconception was chosen.
    """

    question: str
    before: float | None
    after: float | None
    discrimination: float | None
    chosen: Counter[str]


def read_folder(folder: Path) -> tuple[list[Sitting], list[str]]:
    """Return the sittings in a folder's JSON files, ordered by file name. Also return a sentence for each invalid
    file.
    """
    sittings, mistakes = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            one = inventory.read(path.read_bytes())
            sittings.append(one.model_copy(update={"student": harmless.line(one.student)}))
        except ValueError as error:
            mistakes.append(harmless.line(f"{path.name}: {error}"))
    return sittings, mistakes


def students(sittings: Sequence[Sitting], questions: Sequence[ConceptQuestion]) -> list[Student]:
    """Return all students, ordered by name. Raise ValueError if a student has two sittings from before the course, or
    two from after it.
    """
    found: dict[tuple[str, str], int] = {}
    for one in sittings:
        if (key := (one.student, one.when)) in found:
            raise ValueError(
                f"{one.student} has two answer files from {one.when} the course; keep one of them in the folder."
            )
        found[key] = sum(right(one, question) for question in questions)
    names = sorted({name for name, _ in found})
    return [Student(name, found.get((name, "before")), found.get((name, "after")), len(questions)) for name in names]


def mean_gain(every: Sequence[Student]) -> float | None:
    """Return the mean gain of the students who have a gain, or None if nobody has."""
    gains = [one.gain for one in every if one.gain is not None]
    return fmean(gains) if gains else None


def gain_of_means(every: Sequence[Student]) -> float | None:
    """Return Hake's gain, computed from the mean scores of the students with both sittings. Return None if it does not
    exist.
    """
    both = [one for one in every if one.before is not None and one.after is not None]
    if not both:
        return None
    return normalised_gain(fmean(one.before for one in both), fmean(one.after for one in both), both[0].most)


def statistics(sittings: Sequence[Sitting], questions: Sequence[ConceptQuestion]) -> list[Statistics]:
    found = []
    for question in questions:
        marks = [right(one, question) for one in sittings]
        rest = [sum(right(one, other) for other in questions if other != question) for one in sittings]
        given = [one.answers[question.name] for one in sittings if question.name in one.answers]
        wrong = Counter(name for key in given if (name := question.option(key).misconception))
        shares = [_share([mark for mark, one in zip(marks, sittings, strict=True) if one.when == when])
                  for when in ("before", "after")]  # fmt: skip
        found.append(Statistics(question.name, *shares, _point_biserial(marks, rest), wrong))
    return found


def misconceptions(sittings: Sequence[Sitting], questions: Sequence[ConceptQuestion]) -> list[tuple[str, int, int]]:
    """Return (misconception, count before, count after) for each misconception that was chosen, most frequent first."""
    counts = {when: Counter() for when in ("before", "after")}
    for when, count in counts.items():
        for one in statistics([sitting for sitting in sittings if sitting.when == when], questions):
            count.update(one.chosen)
    total = counts["before"] + counts["after"]
    return [(name, counts["before"][name], counts["after"][name]) for name, _ in total.most_common()]


def right(sitting: Sitting, question: ConceptQuestion) -> bool:
    """Return whether a question was answered correctly."""
    return sitting.answers.get(question.name) == question.right


def _share(marks: Sequence[bool]) -> float | None:
    return fmean(marks) if marks else None


def _point_biserial(marks: Sequence[bool], rest: Sequence[int]) -> float | None:
    """Return the correlation between a right answer and the score on the other questions, or None if either does not
    vary.
    """
    if len({*marks}) < 2 or len({*rest}) < 2:
        return None
    return correlation([float(mark) for mark in marks], [float(score) for score in rest])
