"""Near misses: solutions of exercises with a mistake in them, and which marks these lose."""

import lessons
from lessons.grading.grader import grade


def solution(chapter, *changes):
    """Return the textbook's solution of a chapter's exercise, with each (old, new) of `changes` made in it."""
    source = (lessons.chapter(chapter).folder / "solution.py").read_text("utf-8")
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


def begun(chapter):
    """Return the start file with a line more, which changes nothing: as it was given it would not be judged."""
    return (lessons.chapter(chapter).folder / "exercise.py").read_text("utf-8") + "\nBEGUN = True\n"


def lost(chapter, source):
    """Return (score, names of the marks that were not earned)."""
    report = grade(lessons.chapter(chapter), source, seed=5)
    assert not report.error
    return report.score, [mark.name for mark in report.marks if not mark.earned]
