"""The check of the chapter on PipeDream: near misses of its exercise lose the marks that they should lose."""

import pytest

import lessons
from lessons.grading.grader import grade

SOLUTION = (lessons.chapter("pipedream").folder / "solution.py").read_text()
AHEAD = "ahead = comm.size - 1 - comm.rank"


def lost(source):
    """Return (score, names of the marks that were not earned)."""
    report = grade(lessons.chapter("pipedream"), source, seed=5)
    return report.score, [mark.name for mark in report.marks if not mark.earned]


def changed(*pairs):
    source = SOLUTION
    for old, new in pairs:
        assert old in source
        source = source.replace(old, new)
    return source


def test_without_a_stash_one_mark_is_lost():
    score, marks = lost(changed(("stash.pop(batch)", "w"), ("        stash[batch] = w\n", "")))
    assert marks == ["each backward reads what its forward read"] and score < 80


@pytest.mark.parametrize(
    "ahead",
    ["ahead = batches", "ahead = 2 * (comm.size - 1 - comm.rank)"],
    ids=["all forwards first", "twice as far ahead"],
)
def test_a_stage_that_runs_too_far_ahead_does_not_pass(ahead):
    score, marks = lost(changed((AHEAD, ahead)))
    assert "no gradient is staler than necessary" in marks and score < 60


def test_a_stage_that_waits_for_a_rank_that_is_no_neighbour_is_told():
    report = grade(
        lessons.chapter("pipedream"), changed(("comm.recv(before)", "comm.recv(max(0, before - 1))")), seed=5
    )
    assert "which is no neighbour of it" in report.error
