"""The check of the chapter on PipeDream: near misses of its exercise lose the marks that they should lose."""

import pytest

from tests.system.lessons.near_misses import grade_here, lost_here, solution

AHEAD = "ahead = comm.size - 1 - comm.rank"


STASHED, LEAN = (
    "each backward pass reads the weights that its forward pass read",
    "it holds no more versions than it must",
)


def test_a_stage_that_stashes_nothing_earns_nothing_for_holding_few_versions():
    forgetful = solution("pipedream", ("stash.pop(batch)", "w"), ("        stash[batch] = w\n", ""))
    score, marks = lost_here("pipedream", forgetful)
    assert (score, marks) == (61, [STASHED, LEAN])


@pytest.mark.parametrize(
    "ahead",
    ["ahead = batches", "ahead = 2 * (comm.size - 1 - comm.rank)"],
    ids=["all forwards first", "twice as far ahead"],
)
def test_a_stage_that_runs_too_far_ahead_does_not_pass(ahead):
    score, marks = lost_here("pipedream", solution("pipedream", (AHEAD, ahead)))
    assert "no gradient is staler than necessary" in marks and score < 60


def test_a_stage_that_waits_for_a_rank_that_is_no_neighbour_is_told():
    report = grade_here("pipedream", solution("pipedream", ("comm.recv(before)", "comm.recv(max(0, before - 1))")))
    assert "not its neighbour" in report.error
