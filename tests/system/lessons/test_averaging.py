"""The check of the chapter on averaging: near misses of its exercise lose the marks that they should lose."""

import pytest

from tests.system.lessons.near_misses import begun, lost

TOGETHER, VALLEY, ALONE, SENT, TIMED, HELD = [
    "together they learn as much as one worker that sees all the data",
    "down a valley they get farther than averages do",
    "one worker alone is plain SGD",
    "they send no more than averages do",
    "they take no longer",
    "each holds few vectors at once",
]
IDLE = """
def worker(comm, task, s):
    w = task.start()
    for _ in task.steps(together=True):
        pass
    if comm.rank == 0:
        task.report(w)
    return w
"""


@pytest.mark.slow
def test_a_worker_that_never_trains_earns_nothing_for_what_it_does_not_hold():
    assert lost("averaging", IDLE) == (0, [TOGETHER, VALLEY, ALONE, SENT, TIMED, HELD])


@pytest.mark.slow
def test_averages_that_make_up_for_nothing_earn_nothing_for_the_vectors_that_this_would_take():
    assert lost("averaging", begun("averaging")) == (25, [TOGETHER, VALLEY, HELD])
