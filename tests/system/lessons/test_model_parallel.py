"""The check of the chapter on model parallelism: near misses and cheats lose the marks that they should lose."""

import re

import pytest

import lessons
from tests.system.lessons.near_misses import begun, grade_here, lost, lost_here, solution
from tests.tiers import slow_except

CHAPTER = lessons.chapter("model_parallel")
RIGHT, HELD, FORWARD, BACK, SENT, TIME, GENERAL = [
    "every rank hands over the results of the whole block",
    "a rank holds its part, and no more",
    "one all-reduce in the forward pass",
    "one all-reduce in the backward pass",
    "ranks send no more than they must",
    "it takes no longer than it must",
    "it works where units do not divide evenly, and on one rank",
]
ALL = [RIGHT, HELD, FORWARD, BACK, SENT, TIME, GENERAL]
TOTAL = "comm.all_reduce((y @ v).ravel()).reshape(x.shape)"
DX = "comm.all_reduce((dy @ u.T).ravel()).reshape(dz.shape)"
G = "        w -= s.learning_rate * g\n"


def test_who_holds_everything_earns_the_first_mark_alone():
    assert lost_here("model_parallel", begun("model_parallel")) == (20, [HELD, FORWARD, BACK, SENT, TIME, GENERAL])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        ((("z = " + TOTAL, "z = sum(comm.all_gather(y @ v))"),), [FORWARD, SENT]),
        ((("dx = " + DX, "dx = sum(comm.all_gather(dy @ u.T))"),), [BACK, SENT]),
        (((TOTAL, TOTAL.replace("(y @ v)", "(y @ v).astype(float)")),), [SENT, TIME]),
        (((G, G + "        comm.all_reduce(np.zeros(1))\n"),), [BACK, TIME]),
        ((("s.units * rank // comm.size for", "s.units // comm.size * rank for"),), [GENERAL]),
    ],
)
def test_a_near_miss_loses_its_marks(changes, marks):
    assert lost("model_parallel", solution("model_parallel", *changes))[1] == marks


@pytest.mark.parametrize(
    ("old", "new", "marks"),
    slow_except(
        1,
        [(TOTAL, "y @ v", [RIGHT, FORWARD, SENT, TIME, GENERAL]), (DX, "dy @ u.T", [RIGHT, BACK, SENT, TIME, GENERAL])],
    ),
)
def test_a_sum_that_is_left_out_on_one_way_leaves_the_marks_for_the_part_and_the_other_way(old, new, marks):
    assert lost_here("model_parallel", solution("model_parallel", (old, new))) == (35, marks)


def test_ranks_that_sum_nothing_either_way_earn_the_mark_for_their_part_alone():
    alone = solution("model_parallel", (TOTAL, "y @ v"), (DX, "dy @ u.T"))
    assert lost_here("model_parallel", alone) == (20, [RIGHT, FORWARD, BACK, SENT, TIME, GENERAL])


@pytest.mark.parametrize(
    ("old", "new"),
    slow_except(
        1,
        [
            ("dy = dz @ v.T * (y > 0)", "dy = dz @ v.T"),
            ("(y.T @ dz).ravel()", "(y.T @ dz).ravel() / comm.size"),
            (G, G.replace("* g", "* 0.99 * g")),
            ("    return w\n", "    return 0 * w\n"),
            ("task.report(w)", "task.report(1.001 * w)"),
        ],
    ),
)
def test_other_numbers_than_those_of_the_whole_block_earn_nothing(old, new):
    assert lost_here("model_parallel", solution("model_parallel", (old, new))) == (0, ALL)


ALONE = """
import numpy as np


def worker(comm, task, s):
    whole = np.arange(2 * s.width * s.units if comm.rank == 0 else 0)
    w = task.start(whole)
    u, v = (part.reshape(s.width, -1) for part in np.split(w, 2))
    v = v.reshape(-1, s.width)
    for _ in task.steps(together=True):
        x = task.forward(w)
        y = np.maximum(x @ u, 0)
        dz = task.classify(comm.all_reduce((y @ v).ravel()).reshape(x.shape))
        dy = dz @ v.T * (y > 0)
        task.backward(w, comm.all_reduce((dy @ u.T).ravel()).reshape(x.shape))
        w -= s.learning_rate * np.concatenate([(x.T @ dy).ravel(), (y.T @ dz).ravel()])
        task.report(w)
    return w
"""


@pytest.mark.slow
def test_a_rank_that_holds_everything_for_all_earns_the_first_mark_alone():
    assert lost("model_parallel", ALONE)[1] == [HELD, FORWARD, BACK, SENT, TIME, GENERAL]


@pytest.mark.slow
def test_weights_that_travel_in_place_of_activations_lose_the_marks_for_what_is_exchanged():
    """So a rank that holds its part, and borrows the others' for a moment, does not pass for one that does not."""
    travel = solution("model_parallel", ("y, z = upward(comm, x, u, v)\n", """parts = comm.all_gather(w)
        y, z = np.maximum(x @ u, 0), 0
        for part in parts:
            a, b = part[: part.size // 2].reshape(s.width, -1), part[part.size // 2 :].reshape(-1, s.width)
            z = z + np.maximum(x @ a, 0) @ b
"""))  # fmt: skip
    assert lost("model_parallel", travel)[1] == [FORWARD, SENT, TIME]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    slow_except(
        2,
        [
            ("w = task.start(", "task.start(rows.ravel())\n    w = task.start(", r"called task\.start\(places\) twice"),
            (
                "[columns.ravel(), rows.ravel()]",
                "[columns.ravel(), columns.ravel()]",
                "must be distinct, and from 0 to",
            ),
            ("np.concatenate([columns.ravel(), rows.ravel()])", "", "takes the indices of the numbers"),
            ("task.backward(w, dx)", "pass", "called task.report; expected task.backward next"),
            (
                "dz = task.classify(z)",
                "task.classify(z)\n        dz = task.classify(z)",
                "expected task.backward next",
            ),
            ("task.report(w)", "comm.send(w, 0)", "there is no comm.send here"),
            ("all_reduce((y @ v)", "all_reduce((y @ v).astype(np.float16)", "ranks cannot reduce float16"),
            (".reshape(x.shape)", "", r"handed over a z of shape \(\d+,\); expected floats of shape"),
            (
                "    w = task",
                "    comm.all_gather(rows)\n    w = task",
                "exchanged something before the first task.forward",
            ),
        ],
    ),
)
def test_who_goes_past_the_ledger_is_told_and_earns_nothing(old, new, said):
    report = grade_here("model_parallel", solution("model_parallel", (old, new)))
    assert re.search(said, report.error) and report.score == 0, report.error
