"""The check of the chapter on decoupled learning: near misses of its exercise lose the marks that they should lose."""

import re

import pytest

import lessons
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, lost, solution

CHAPTER = lessons.chapter("decoupled")
TEMPLATE = begun("decoupled")
UPDATED, WAITS, KEPT, SENT, LEARNED = [
    "each module makes its update for every mini-batch",
    "no module waits for what comes from above",
    "a module keeps the activations of one mini-batch",
    "nothing travels that need not",
    "the model learns, its lower modules too",
]


def test_back_propagation_waits_sends_errors_and_learns_too_little_in_these_steps():
    assert lost("decoupled", TEMPLATE) == (31, [WAITS, SENT, LEARNED])


def test_an_error_that_is_sent_down_and_that_nobody_takes_loses_the_mark_for_bytes():
    sends = "    dx, g = task.backward(w, dy, batch)\n        if not first:\n            comm.send(dx, comm.rank - 1)\n"
    score, marks = lost("decoupled", solution("decoupled", ("    _, g = task.backward(w, dy, batch)\n", sends)))
    assert marks == [SENT] and score == 88


def test_lower_modules_that_learn_nothing_lose_the_mark_for_learning():
    score, marks = lost("decoupled", solution("decoupled", ("return dy, a", "return 0 * y, a")))
    assert marks == [LEARNED] and score == 75


def test_a_module_that_leaves_out_one_mini_batch_loses_every_mark():
    updates = "        w = w - s.learning_rate * g\n        task.report(w)\n"
    left_out = (
        "        if batch or comm.rank != 2:\n            w = w - s.learning_rate * g\n            task.report(w)\n"
    )
    report = grade(CHAPTER, solution("decoupled", (updates, left_out)), seed=5)
    assert report.score == 0 and re.fullmatch(
        r"module 2 made (\d+) updates for \d+ mini-batches", report.marks[0].observed
    )


OLD = '''
def module(comm, task, s):
    """Learn from old errors, as in DDG."""
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    w, behind, kept = task.start(), comm.size - 1 - comm.rank, []
    batches = list(task.steps())
    for t in range(len(batches) + behind):
        if t < len(batches):
            y = task.forward(w, None if first else comm.recv(comm.rank - 1), batches[t])
            kept.append(batches[t])
            if not last:
                comm.send(y, comm.rank + 1)
        if t >= behind:
            dy = None if last else comm.recv(comm.rank + 1)
            dx, g = task.backward(w, dy, kept.pop(0))
            if not first:
                comm.send(dx, comm.rank - 1)
            w = w - s.learning_rate * g
            task.report(w)
    return w
'''


def test_old_errors_need_no_waiting_but_the_activations_that_they_belong_to():
    _, marks = lost("decoupled", OLD)
    assert KEPT in marks and SENT in marks and WAITS not in marks and UPDATED not in marks


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return dy, a", "return dy[:1], a", "got an error of shape"),
        ("w = w - s.learning_rate * g", "w = w - 2 * s.learning_rate * g", "is not w - learning_rate"),
        (
            "None if first else comm.recv(comm.rank - 1)",
            "None if first else 0 * comm.recv(comm.rank - 1)",
            "but not with",
        ),
        ("a = None if last else task.head()", "a = task.head()", "it has the loss itself, and takes no classifier"),
        (
            "        task.report(w)\n",
            "",
            "the forward of mini-batch 1 on module . was given weights that were not reported",
        ),
        (
            "task.backward(w, dy",
            "task.backward(0 * w, dy",
            "the backward of mini-batch 0 on module . was given weights",
        ),
        ("task.classify(a, y,", "task.classify(a, -y,", "classified something else than its y of mini-batch 0"),
        ("task.forward(w, x, batch)", "task.forward(w, x, batch + 1)", "went forward with mini-batch 1; 0 was next"),
        ("task.backward(w, dy, batch)", "task.backward(w, dy, batch + 1)", "mini-batch 1, which is not on its way"),
        ("comm.send(y, comm.rank + 1)", "comm.send(y, 0)", "which is no neighbour|expected an array, to a neighbour"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(old, new, said):
    assert re.search(said, grade(CHAPTER, solution("decoupled", (old, new)), seed=5).error)
