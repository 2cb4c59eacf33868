"""The check of the chapter on shared memory: near misses of its exercise lose the marks that they should lose."""

import itertools
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

import lessons
from lessons.shared_memory.experiments import NEAR, samples_until_near
from tests.system.lessons.near_misses import begun, grade_here, lost_here, solution
from workloads import sparse

CHAPTER = lessons.chapter("shared_memory")
TEMPLATE = begun("shared_memory")
ADDED, KEPT, WRITTEN, LEARNED, FREE = [
    "each gradient is added to w",
    "few additions are lost",
    "few coordinates are written",
    "the objective matches that of one thread",
    "no time is lost in waiting",
]


def test_the_template_covers_what_others_write_all_over_w_and_learns_too_little():
    score, marks = lost_here("shared_memory", TEMPLATE)
    assert score < 60 and {KEPT, WRITTEN, LEARNED} <= set(marks) and ADDED not in marks


def test_adding_to_what_was_read_before_the_gradient_loses_the_additions_of_others():
    score, marks = lost_here(
        "shared_memory",
        solution(
            "shared_memory",
            ("def add(shared, change):", "def add(shared, change, w):"),
            ("* gathered)", "* gathered, w)"),
            ("shared.read(v) + change[v]", "w[v] + change[v]"),
        ),
    )
    assert marks == [KEPT, WRITTEN, LEARNED, FREE] and score < 25, "and is so far off that nothing else counts"


def test_writing_after_each_sample_writes_popular_coordinates_again_and_again():
    score, marks = lost_here("shared_memory", solution("shared_memory", ("GATHER = 32", "GATHER = 1")))
    assert marks == [WRITTEN] and score < 90


def test_gathering_everything_steps_too_far_and_then_nothing_else_counts():
    _, marks = lost_here("shared_memory", solution("shared_memory", ("GATHER = 32", "GATHER = 10**6")))
    assert marks == [KEPT, WRITTEN, LEARNED, FREE]


TURNS = """
import numpy as np

def thread(comm, task, s):
    \"\"\"Take turns: a token goes round, and who has it takes a step.\"\"\"
    shared = comm.shared(task.start())
    for step in task.steps():
        if step or comm.rank:
            comm.recv((comm.rank - 1) % comm.size)
        w = shared.read()
        _, g = task.gradient(w)
        v = np.flatnonzero(g)
        shared.write(w[v] - s.learning_rate * g[v], v)
        comm.send(None, (comm.rank + 1) % comm.size)
    if comm.rank == 0:
        comm.recv(comm.size - 1)
"""


ALONE = """
import numpy as np

def thread(comm, task, s):
    \"\"\"Train on a copy of one's own, and add what came of it at the end, number by number.\"\"\"
    shared = comm.shared(task.start())
    w = shared.read()
    change = np.zeros(len(w))
    for _ in task.steps():
        _, g = task.gradient(w + change)
        change -= s.learning_rate * g
    for v in np.flatnonzero(change):
        shared.write(shared.read([v]) + change[v], [v])
"""


def test_threads_that_share_nothing_until_the_end_earn_nothing_but_the_sum():
    score, marks = lost_here("shared_memory", ALONE)
    assert marks == [KEPT, WRITTEN, LEARNED, FREE] and score < 25


def test_a_token_that_lets_one_thread_step_at_a_time_loses_nothing_but_time():
    _, marks = lost_here("shared_memory", TURNS)
    assert marks == [WRITTEN, FREE]


MESSAGES = """
import numpy as np

def thread(comm, task, s):
    \"\"\"Train on a copy of one's own, and tell the others by messages what was added.\"\"\"
    shared = comm.shared(task.start())
    w, change = shared.read(), 0
    for step in task.steps():
        _, g = task.gradient(w)
        change = change - s.learning_rate * g
        for rank in range(comm.size):
            if rank != comm.rank:
                comm.send({message}, rank)
        w = w - s.learning_rate * g
        for rank in range(comm.size):
            if rank != comm.rank:
                w = w - s.learning_rate * comm.recv(rank)
    for rank in range(comm.size):
        if rank == comm.rank:
            shared.write(shared.read() + change)
        comm.barrier()
"""


@pytest.mark.parametrize("message", ["g", "float(g[0])", "tuple(g)"])
def test_threads_that_tell_each_other_anything_by_messages_are_refused(message):
    report = grade_here("shared_memory", MESSAGES.format(message=message))
    assert report.score == 0 and "messages are empty here" in report.error


def test_rows_are_those_of_no_other_grading():
    rows = [sparse.build(sparse.Settings(rows=8), seed=seed).data[3] for seed in (sparse.SEED, 1, 2**100)]
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(rows, 2))
    assert np.array_equal(rows[0], sparse.build(sparse.Settings(rows=8)).data[3])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("gathered += g\n", "gathered += g if step % 2 else 0\n"), "added .* to coordinate .*, expected"),
        (("_, g = task.gradient(w)", "g = np.zeros(len(w))"), "computed the gradients of 0 of its"),
    ],
)
def test_a_thread_that_leaves_gradients_out_earns_nothing(change, said):
    report = grade_here("shared_memory", solution("shared_memory", change))
    assert report.score == 0 and re.search(said, report.marks[0].observed)


def test_a_thread_that_does_nothing_earns_nothing():
    assert grade_here("shared_memory", "def thread(comm, task, s):\n    comm.shared(task.start())\n").score == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("shared.write(shared.read(v) + change[v], v)", "shared.write(change, v)", "cannot be stored in"),
        ("shared.write(shared.read(v) + change[v], v)", "shared.add(change[v], v)", "there is no shared.add"),
        ("shared.read(v) + change[v], v", "shared.read(v[:1]) + change[v[:1]], v[[0] * 2]", "cannot be stored in"),
        ("w = shared.read()", "w = shared.vector", "no shared.vector in this exercise"),
        ("w = shared.read()", "w = np.zeros(len(gathered))", "that it has never read"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(old, new, said):
    changes = [(old, new)] + ([("shared.read(v) + change[v]", "change[v]")] if "zeros" in new else [])
    assert re.search(said, grade_here("shared_memory", solution("shared_memory", *changes)).error)


def test_samples_until_near_the_minimum_are_read_between_two_evaluations():
    def run_with(*gap):
        return SimpleNamespace(evaluations={"loss": np.array(gap), "samples": np.array([0, 64, 128])})

    assert samples_until_near(run_with(NEAR * 8, NEAR * 2, NEAR / 2)) == pytest.approx(96)
    assert samples_until_near(run_with(NEAR * 8, NEAR / 2, NEAR * 2)) == pytest.approx(48), "the first time"
    assert samples_until_near(run_with(NEAR * 8, NEAR * 4, NEAR * 2)) == math.inf
