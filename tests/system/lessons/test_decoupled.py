"""The check of the chapter on decoupled learning: near misses of its exercise lose the marks that they should lose."""

import re

import pytest

import lessons
from lessons.decoupled.experiments import WIDE
from lessons.grading.grader import grade
from lessons.seeds import Seeded
from tests.system.lessons.near_misses import begun, grade_here, lost, solution
from tests.tiers import slow_except

CHAPTER = lessons.chapter("decoupled")
TEMPLATE = begun("decoupled")
UPDATED, LEARNED, APART, WAITS, KEPT, SENT = [
    "each module makes its update for every mini-batch",
    "each module learns from every mini-batch, and so does its classifier",
    "the model tells the spirals apart",
    "no module waits for anything from above",
    "a module keeps the activations of one mini-batch",
    "nothing is sent unnecessarily",
]
COST = [WAITS, KEPT, SENT]


@pytest.mark.slow
def test_back_propagation_learns_too_little_in_these_steps_for_its_cost_to_count():
    assert lost("decoupled", TEMPLATE) == (31, [APART, *COST])


@pytest.mark.slow
def test_an_error_that_is_sent_down_and_that_nobody_takes_loses_the_mark_for_bytes():
    sends = "    dx, g = task.backward(w, dy, batch)\n        if not first:\n            comm.send(dx, comm.rank - 1)\n"
    score, marks = lost("decoupled", solution("decoupled", ("    _, g = task.backward(w, dy, batch)\n", sends)))
    assert marks == [SENT] and score == 88


BLIND = {
    "zeros for all": "return 0 * y, a",
    "zeros for one": "return dy * (comm.rank != 1), a",
    "a trillionth": "return 1e-12 * dy, a",
    "uphill": "return -dy, a",
    "that of the mini-batch before": "late = globals().setdefault('late', [dy]); late.append(dy); return late[-2], a",
}


@pytest.mark.slow
@pytest.mark.parametrize("error", BLIND)
def test_a_module_that_learns_nothing_earns_nothing_for_waiting_for_nobody(error):
    score, marks = lost("decoupled", solution("decoupled", ("return dy, a", BLIND[error])))
    assert {LEARNED, *COST} <= {*marks} and score <= 31, marks


def test_a_lower_module_that_learns_nothing_is_named():
    report = grade_here("decoupled", solution("decoupled", ("return dy, a", BLIND["zeros for one"])))
    assert report.score <= 31 and report.marks[1].observed.startswith("module 1 called backward for mini-batch")


@pytest.mark.slow
def test_a_classifier_that_is_never_taught_loses_the_mark_for_learning():
    report = grade(CHAPTER, solution("decoupled", ("    a = a - s.learning_rate * ga\n", "")), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [LEARNED] and report.score == 81
    assert report.marks[1].observed.startswith("the classifier of module 0 was given weights for mini-batch 1 ")


@pytest.mark.slow
def test_a_classifier_of_zeros_teaches_nothing_and_its_module_earns_nothing_for_its_cost():
    heads = ("a = None if last else task.head()", "a = None if last else 0 * task.head()")
    idle = ("    a = a - s.learning_rate * ga\n", "")
    assert lost("decoupled", solution("decoupled", heads, idle)) == (12, [LEARNED, APART, *COST])


@pytest.mark.slow
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


@pytest.mark.slow
def test_old_errors_need_no_waiting_but_the_activations_that_they_belong_to():
    _, marks = lost("decoupled", OLD)
    assert KEPT in marks and SENT in marks and LEARNED not in marks and UPDATED not in marks


@pytest.mark.parametrize(
    ("old", "new", "said"),
    slow_except(
        2,
        [
            ("return dy, a", "return dy[:1], a", "got an error of shape"),
            ("w = w - s.learning_rate * g", "w = w - 2 * s.learning_rate * g", "is not w - learning_rate"),
            (
                "None if first else comm.recv(comm.rank - 1)",
                "None if first else 0 * comm.recv(comm.rank - 1)",
                "but not with",
            ),
            ("a = None if last else task.head()", "a = task.head()", "is the last one and has no classifier"),
            (
                "        task.report(w)\n",
                "",
                "forward for mini-batch 1 on module . was given weights that were not reported",
            ),
            (
                "task.backward(w, dy",
                "task.backward(0 * w, dy",
                "backward for mini-batch 0 on module . was given weights",
            ),
            ("task.classify(a, y,", "task.classify(a, -y,", "classified something other than its y of mini-batch 0"),
            (
                "task.forward(w, x, batch)",
                "task.forward(w, x, batch + 1)",
                "called forward for mini-batch 1; expected 0",
            ),
            ("task.backward(w, dy, batch)", "task.backward(w, dy, batch + 1)", "mini-batch 1, which is not in flight"),
            ("comm.send(y, comm.rank + 1)", "comm.send(y, 0)", "not its neighbour|expected an array, to a neighbour"),
        ],
    ),
)
def test_a_mistake_is_told_in_a_sentence(old, new, said):
    assert re.search(said, grade_here("decoupled", solution("decoupled", (old, new))).error)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_guesses_of_eight_modules_that_see_the_label_come_close_in_a_thousand_steps(seed):
    train = Seeded(seed)
    guesses, errors = (
        train(algorithm=algorithm, workers=workers, learning_rate=0.4, steps=1000, evaluations=1, **WIDE)
        for algorithm, workers in (("dni", 8), ("layer_wise", 1))
    )
    right, most = (done.evaluations["accuracy"][-1] for done in (guesses, errors))
    assert right > most - 0.03 and right > 0.94, "after 80 steps it is below 0.8"
