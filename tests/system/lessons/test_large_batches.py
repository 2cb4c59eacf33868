"""The check of the chapter on large batches: near misses of its exercise lose the marks that they should lose."""

import pytest

import lessons
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, lost, lost_here, solution

CHAPTER = "large_batches"
WHOLE, RATED, LAST, SENT, TIMED, HELD = [
    "every full update is along the mean gradient of its whole batch",
    "the rate of full updates is scaled, warms up, and falls",
    "a partial last batch has the rate for its size",
    "it sends no more than it must",
    "it takes no longer than it must",
    "each worker holds few vectors at once",
]
EACH = "        total += g\n"
GATHERED = "\n    if taken:\n        update()\n"


def test_an_update_in_every_step_loses_every_mark():
    assert lost_here(CHAPTER, begun(CHAPTER)) == (0, [WHOLE, RATED, LAST, SENT, TIMED, HELD])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "marks"),
    [
        (GATHERED, "\n", [LAST]),
        ("rate(updates, comm.size * taken, s) / taken", "rate(updates, comm.size * s.accumulate, s) / taken", [LAST]),
        ("rate(updates, comm.size * taken, s) / taken", "s.learning_rate / taken", [RATED, LAST]),
        ("rate(updates, comm.size * taken, s) / taken", "rate(updates, taken, s) / taken", [RATED, LAST]),
        ("if t < s.warm_up:", "if False:", [RATED]),
        ("return full if t < s.milestone else full / 10", "return full", [RATED, LAST]),
        (EACH, f'{EACH}        comm.all_reduce(g, op="mean")\n', [SENT, TIMED]),
        (EACH, f"{EACH}        hoard.append(g.copy())\n", [HELD]),
    ],
    ids=["no last", "last at full rate", "unscaled", "scaled by its own", "no warm-up", "no fall", "chatty", "hoards"],
)
def test_a_near_miss_loses_its_marks_and_no_others(old, new, marks):
    source = solution(CHAPTER, (old, new), ("import numpy as np\n", "import numpy as np\n\nhoard = []\n"))
    assert lost(CHAPTER, source)[1] == marks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "divisor"),
    [
        ("rate(updates, comm.size * taken, s) / taken", "rate(updates, comm.size * taken, s)", "s.accumulate"),
        ('comm.all_reduce(total, op="mean")', "comm.all_reduce(total)", "comm.size"),
    ],
)
def test_a_sum_where_a_mean_is_asked_for_loses_the_marks_for_the_mean_and_for_what_multiplies_it(old, new, divisor):
    report = grade(lessons.chapter(CHAPTER), solution(CHAPTER, (old, new)), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [WHOLE, RATED, LAST] and report.score == 36
    assert f"divide their sum by {divisor}?" in report.marks[0].observed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("    comm.all_reduce(total", "    comm.all_reduce(total.copy()", "is not along the mean of its"),
        (
            "        _, g = task.gradient(w)",
            "        _, g = task.gradient(w - 0.1 * total)",
            "were not computed at the model",
        ),
        ("        total += g", "        total[:] = g", "is not along the mean of its"),
        (
            "        _, g = task.gradient(w)",
            "        g = task.gradient(w)[1] if comm.rank == 0 else 0 * w",
            "rank 1 computed 0 gradients",
        ),
        ("if comm.rank == 0:", "if True:", "only rank 0 reports"),
        ("_, g = task.gradient(w)", "_, g = task.gradient(w); task.gradient(w)", "more gradients than it has steps"),
        ("comm.all_reduce(total", "comm.barrier(); comm.all_reduce(total", "there is no comm.barrier here"),
    ],
)
def test_what_is_no_large_batch_earns_nothing_and_is_told(old, new, words):
    report = grade(lessons.chapter(CHAPTER), solution(CHAPTER, (old, new)), seed=5)
    assert report.score == 0
    assert words in f"{report.error} {[mark.observed for mark in report.marks]}"
