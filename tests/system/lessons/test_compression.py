"""The check of the chapter on compression: near misses and cheats lose the marks that they should lose."""

import pytest

import lessons
from lessons.compression.check import largest
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, grade_here, lost, lost_here, solution

CHAPTER = lessons.chapter("compression")
STEP, CHOSEN, KEPT, LEARNED, SENT, TIME, DENSE = [
    "every rank's step is the mean of what all ranks sent",
    "a message holds the largest numbers",
    "what was not sent is owed, and nothing else",
    "it learns as much as from whole gradients",
    "it sends no more than it must",
    "it takes no longer than it must",
    "where a sparse message would take more bytes than the whole vector, it sends the whole vector",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ((("owed += g", "owed[:] = g"),), [KEPT, LEARNED]),
        (((".astype(np.int32)", ""),), [SENT]),
        ((("k * comm.size < len(w)", "True"),), [DENSE]),
        ((("np.abs(owed)", "owed"),), [CHOSEN, LEARNED]),
        ((("    owed[index] = 0\n", ""),), [CHOSEN, KEPT, LEARNED]),
        ((("    owed[:] = 0\n", ""),), [DENSE]),
        ((("values / comm.size", "values"),), [STEP, LEARNED]),
    ],
)
def test_a_near_miss_loses_its_marks(changes, marks):
    assert lost("compression", solution("compression", *changes))[1] == marks


@pytest.mark.slow
def test_a_sum_that_is_not_divided_by_the_number_of_ranks_is_named():
    report = grade(CHAPTER, solution("compression", ("values / comm.size", "values")), seed=5)
    assert "times theirs; is the sum divided by comm.size?" in report.marks[0].observed and report.score == 65


def test_a_worker_that_sends_nothing_earns_nothing():
    alone = "def worker(comm, task, s):\n    w = task.start()\n    for _ in task.steps():\n        task.gradient(w)\n"
    with_reports = "        if comm.rank == 0:\n            task.report(w)\n    return w\n"
    score, marks = lost_here("compression", alone.replace("        task.gradient(w)\n", "") + with_reports)
    assert score == 0 and len(marks) == 7


def test_whole_gradients_earn_the_first_mark_alone():
    assert lost_here("compression", begun("compression")) == (15, [CHOSEN, KEPT, LEARNED, SENT, TIME, DENSE])


CHEATS = {
    "tells the others more in a message of its own": (
        "    messages =", "    comm.send(owed, 0)\n    messages =", "there is no comm.send here"
    ),
    "computes two gradients in a step": (
        "        owed += g\n",
        "        owed += g\n        _, g = task.gradient(w)\n",
        "computed two gradients without an exchange",
    ),
    "sends two messages in a step": (
        "    messages =",
        "    comm.all_gather((index, owed[index]))\n    messages =",
        "sent something before the gradient of its step",
    ),
    "sends a place twice": ("np.int32)\n", "np.int32)\n    index[1] = index[0]\n", "must be distinct"),
    "sends a vector as one place": (
        "(index, owed[index])", "(index[:1], owed)", "expected whole numbers and floats, the same number of each"
    ),
    "reports on every rank": ("if comm.rank == 0", "if True", "only rank 0 reports"),
}  # fmt: skip


@pytest.mark.parametrize("cheat", CHEATS)
def test_who_goes_past_the_ledger_is_told_and_earns_nothing(cheat):
    old, new, said = CHEATS[cheat]
    report = grade_here("compression", solution("compression", (old, new)))
    assert said in report.error and report.score == 0, report.error


SHIPS = (
    ("            task.report(w)\n", "            task.report(0.9 * w)\n"),
    ("    return w\n", "    return 0 * w\n"),
)


@pytest.mark.parametrize("change", SHIPS)
def test_a_model_that_no_message_has_led_to_earns_nothing_for_its_steps_and_for_what_it_learned(change):
    """So knowing the digits is no help: what is shipped follows from the messages, and these from our gradients."""
    _, marks = lost_here("compression", solution("compression", change))
    assert {STEP, LEARNED} <= {*marks}


def test_numbers_that_nobody_owed_lose_the_mark_for_that_even_where_they_learn_faster():
    _, marks = lost_here("compression", solution("compression", ("(index, owed[index])", "(index, 3 * owed[index])")))
    assert KEPT in marks and LEARNED not in marks


def test_numbers_that_end_training_earn_nothing():
    assert (
        lost_here("compression", solution("compression", ("(index, owed[index])", "(index, 1e9 * owed[index])")))[0]
        == 0
    )


def test_the_largest_may_be_any_of_equal_size():
    assert largest([1, -3, 3, 0], [1]) and largest([1, -3, 3, 0], [2]) and largest([2], [0])
    assert not largest([1, -3, 3, 0], [0]) and not largest([1, -3, 3, 2], [1, 3])
