"""Why a rank ended, in sentences."""

from cluster.real.failure import rank_lost


def test_a_rank_that_takes_no_steps_is_not_said_to_be_before_its_first_one():
    assert rank_lost(0, 0.01, -1, "killed").text == "rank 0 was lost at 0.01 s; killed", "it may be a server"
    assert rank_lost(2, 0.01, 7, "killed").text == "rank 2 was lost at 0.01 s (step 7); killed"
