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


def lost(chapter, source):
    """Return (score, names of the marks that were not earned)."""
    report = grade(lessons.chapter(chapter), source, seed=5)
    assert not report.error
    return report.score, [mark.name for mark in report.marks if not mark.earned]
