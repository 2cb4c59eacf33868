"""Near misses: solutions of exercises with a mistake in them, and which marks these lose."""

import functools
import importlib

import pytest

import lessons
from lessons.figure import run_now
from lessons.grading.grader import grade
from lessons.grading.in_process import InProcess


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


def grade_here(chapter, source, seed=5):
    """Return the report of grading in this process: that of the sandbox, except that memory is not measured.

    The sandbox starts a process for every rank, which takes longer than what most near misses do in it. Runs that a
    check compares solutions with are the same for all of them under one seed, and are made once.
    """
    check = importlib.import_module(f"lessons.{chapter}.check")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(check, "run_now", lambda **values: _run_once(tuple(values.items())), raising=False)
        return grade(lessons.chapter(chapter), source, seed, starts=InProcess)


@functools.cache
def _run_once(values):
    return run_now(**dict(values))


def lost(chapter, source):
    """Return (score, names of the marks that were not earned)."""
    return _lost(grade(lessons.chapter(chapter), source, seed=5))


def lost_here(chapter, source):
    """Return the same as `lost`, of grading in this process."""
    return _lost(grade_here(chapter, source))


def _lost(report):
    assert not report.error
    return report.score, [mark.name for mark in report.marks if not mark.earned]
