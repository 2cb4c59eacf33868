"""The check of the chapter on the distributed update: near misses of its exercise lose the marks that they should."""

import pytest

import lessons
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, grade_here, lost, lost_here, solution

CHAPTER = "distributed_update"
RIGHT, OWNED, HELD, SENT, TIMED, LAST, ANY, WEIGHED = [
    "every full update is Adam's, with the mean gradient of its whole batch",
    "each rank updates its own piece of the weights, and no other",
    "each rank holds few vectors at once",
    "they send no more than they must",
    "they take no longer than they must",
    "a partial last batch makes an update",
    "it works for any number of ranks and of weights",
    "a mini-batch counts by its samples",
]
REDUCED = 'g = comm.reduce_scatter(total, op="mean")'
GATHERED = "zip(pieces, comm.all_gather(mine), strict=True)"
EVERYBODY = (  # the whole step on every rank, and never a whole vector beside w, the sum, m and v
    ("np.zeros_like(pieces[comm.rank])", "np.zeros_like(w)"),
    ("pieces, m, v, total, taken, updates", "w, m, v, total, taken, updates"),
    ("    mine = pieces[comm.rank]\n", "    mine = pieces\n"),
    (REDUCED, 'g = comm.all_reduce(total, op="mean")'),
    (f"    for piece, updated in {GATHERED}:\n        piece[:] = updated\n", ""),
)
EQUAL = (
    ("        g *= s.samples[step]\n", ""),
    ("taken + s.samples[step]", "taken + 1"),
)  # all mini-batches count alike
SPY = """
def worker(comm, task, s):
    w = task.start()
    return sharded(comm, task, s) if {shares} else everybody(comm, task, s)

"""


def test_a_whole_step_on_every_rank_loses_all_that_the_chapter_is_about():
    assert lost_here(CHAPTER, begun(CHAPTER)) == (28, [OWNED, HELD, LAST, ANY, WEIGHED])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        (EVERYBODY, [OWNED, HELD, ANY]),
        ([("\n    if parts:\n        update()\n", "\n")], [LAST, ANY]),
        ([("    g /= taken\n", "    g /= s.samples[0] * s.accumulate\n")], [LAST, ANY]),
        (EQUAL, [WEIGHED]),
        ([("        total += g\n", "        total += g\n        hoard.append(g.copy())\n")], [HELD]),
        ([("comm.all_gather(mine)", 'comm.all_gather(mine.astype("f8"))')], [SENT, TIMED]),
        ([("    g /= taken\n", "    g /= taken\n    comm.all_gather(mine)\n")], [OWNED, HELD, SENT, TIMED, ANY]),
        ([(REDUCED, f'{REDUCED}\n    comm.all_reduce(total, op="mean")')], [OWNED, HELD, SENT, TIMED, ANY]),
    ],
    ids=[
        "everybody",
        "no last",
        "last by the full number",
        "mean of means",
        "hoards",
        "double",
        "gathers twice",
        "reduces twice",
    ],
)
def test_a_near_miss_loses_its_marks_and_no_others(changes, marks):
    source = solution(CHAPTER, *changes, ("import numpy as np\n", "import numpy as np\n\nhoard = []\n"))
    assert lost(CHAPTER, source)[1] == marks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shares", "marks"),
    [("len(w) > 1000", [ANY]), ("comm.size != 6", [OWNED, HELD, ANY])],
    ids=["only if large", "only if small"],
)
def test_who_shares_only_in_some_trainings_is_told(shares, marks):
    parts = [
        solution(CHAPTER, *changes).replace("def worker(", f"def {name}(").replace("shared_step(", f"{name}_step(")
        for name, changes in (("sharded", ()), ("everybody", EVERYBODY))
    ]
    assert lost(CHAPTER, "\n".join([*parts, SPY.format(shares=shares)]))[1] == marks


def test_the_mean_of_the_means_is_named_where_mini_batches_differ_in_size():
    report = grade_here(CHAPTER, solution(CHAPTER, *EQUAL))
    assert [mark.name for mark in report.marks if not mark.earned] == [WEIGHED]
    assert "a mini-batch of 1 counts as much as one of" in report.marks[-1].observed
    assert grade_here(CHAPTER, solution(CHAPTER)).score == 100


@pytest.mark.slow
def test_what_another_rank_knows_is_in_no_variable():
    source = solution(
        CHAPTER,
        ("    g /= taken\n", "    g /= taken\n    means[comm.rank] = g.copy()\n"),
        (
            f"    for piece, updated in {GATHERED}:\n        piece[:] = updated\n",
            "    for rank, updated in enumerate(comm.all_gather(mine)):\n"
            "        pieces[rank][:] = updated if comm.size == 6 else updated + 0 * means[rank]\n",
        ),
    )
    report = grade(lessons.chapter(CHAPTER), f"means = {{}}\n{source}", seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [ANY, WEIGHED] and "KeyError" in report.error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("        total[:] = 0\n", "", "is not Adam's with the mean of its"),
        (
            "        _, g = task.gradient(w)",
            "        _, g = task.gradient(w - 0.1 * total)",
            "at a model other",
        ),
        ("(1 - s.beta1**t)", "(1 - s.beta1)", "is not Adam's with the mean of its"),
        ("updates + 1, s)", "updates * parts + parts, s)", "is not Adam's with the mean of its"),
        ("piece[:] = updated", "piece[:-1] = updated[:-1]", "at a model other"),
        ("if comm.rank == 0:", "if True:", "only rank 0 reports"),
        ("_, g = task.gradient(w)", "_, g = task.gradient(w); task.gradient(w)", "more gradients than it has steps"),
        (REDUCED, f"comm.send(total, 0); {REDUCED}", "there is no comm.send here"),
        ("comm.all_gather(mine)", "comm.all_gather((mine,))", "all_gather takes a vector here"),
    ],
)
def test_what_is_no_step_of_adam_earns_nothing_and_is_told(old, new, words):
    report = grade(lessons.chapter(CHAPTER), solution(CHAPTER, (old, new)), seed=5)
    assert report.score == 0, report
    assert words in f"{report.error} {[mark.observed for mark in report.marks]}"


@pytest.mark.slow
def test_increments_may_be_gathered_in_place_of_weights():
    """As MLSL does."""
    source = solution(
        CHAPTER,
        ("    mine = pieces[comm.rank]\n", "    mine = np.zeros_like(pieces[comm.rank])\n"),
        ("piece[:] = updated", "piece += updated"),
    )
    assert lost(CHAPTER, source) == (100, [])
