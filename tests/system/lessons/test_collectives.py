"""The exercise on collectives: what students write instead, which marks it loses, and what they are told."""

import re
from types import SimpleNamespace

import pytest

import lessons
from lessons.collectives.check import Heard, Sum
from lessons.grading.attempt import Solution
from lessons.grading.grader import grade
from tests.tiers import slow_except

SUM, BITS, ANY, LONG, SHORT, BYTES = range(6)

WHOLE_VECTORS = """
def worker(comm, task, s):
    x = task.start()
    total = x.copy()
    for _ in range(comm.size - 1):
        comm.send(x, (comm.rank + 1) % comm.size)
        x = comm.recv((comm.rank - 1) % comm.size)
        total += x
    return total
"""
PAIRS = """
def worker(comm, task, s):
    x, distance = task.start(), 1
    while distance < comm.size:
        comm.send(x, comm.rank ^ distance)
        x += comm.recv(comm.rank ^ distance)
        distance *= 2
    return x
"""


def solution():
    return (lessons.chapter("collectives").folder / "solution.py").read_text()


def marks(source):
    report = grade(lessons.chapter("collectives"), source, seed=4)
    return [bool(mark.earned) for mark in report.marks], [mark.observed for mark in report.marks], report.error


@pytest.mark.slow
def test_whole_vectors_around_a_ring_sum_up_but_in_an_order_of_each_ranks_own():
    earned, told, _ = marks(WHOLE_VECTORS)
    assert earned == [True, False, False, False, False, False]
    assert "each adds in its own order" in told[BITS] and "times what the ring takes" in told[LONG]


@pytest.mark.slow
def test_pairs_without_partners_are_told_which_rank_does_not_exist():
    earned, _, error = marks(PAIRS)
    assert not any(earned) and re.search(r"comm.send takes the number of a rank, from 0 to \d, but got \d", error), (
        error
    )


@pytest.mark.slow
def test_pieces_that_leave_out_the_rest_are_told_which_number_is_wrong():
    pieces = "[x[len(x) * k // size : len(x) * (k + 1) // size] for k in range(size)]"
    assert pieces in solution()
    equal = "[x[len(x) // size * k : len(x) // size * (k + 1)] for k in range(size)]"
    earned, told, _ = marks(solution().replace(pieces, equal))
    assert not earned[SUM] and told[SUM].startswith("number ") and "the sum is" in told[SUM]
    assert not earned[LONG] and not earned[BYTES], "what is wrong is not fast"


@pytest.mark.slow
def test_a_ring_alone_loses_the_mark_of_short_vectors_and_no_other():
    earned, told, _ = marks(solution().replace("x.nbytes < SHORT", "False"))
    assert earned == [True, True, True, True, False, True]
    assert "times what doubling takes" in told[SHORT]


TELEPATHY = """
import numpy as np

TABLE = {}

def worker(comm, task, s):
    x, distance = task.start(), 1
    if comm.size in (5, 6, 7):
        return ring(comm, x)
    held = TABLE.setdefault((comm.size, len(x)), {})
    held[comm.rank] = x
    while distance < comm.size:  # as many bytes as a sum takes, and all hear of all
        comm.send(np.zeros_like(x), (comm.rank + distance) % comm.size)
        comm.recv((comm.rank - distance) % comm.size)
        distance *= 2
    return sum(held.get(rank, x).astype("f8") for rank in range(comm.size)).astype("f4")

"""


@pytest.mark.slow
def test_ranks_that_keep_a_table_and_send_zeros_lose_what_they_do_so_for():
    source = TELEPATHY + solution()[solution().index("def ring(") : solution().index("def doubling(")]
    earned, told, _ = marks(source)
    assert earned == [True, True, False, True, False, True]
    assert "but the sum is" in told[SHORT] and "but the sum is" in told[ANY]


UNHEARD = """
TABLE = {}

def worker(comm, task, s):
    x = task.start()
    TABLE.setdefault((comm.size, len(x)), {})[comm.rank] = x
    for _ in range(2):
        comm.send(x, (comm.rank + 1) % comm.size)
        comm.recv((comm.rank - 1) % comm.size)
    return sum(TABLE[comm.size, len(x)].values())
"""


def test_ranks_that_send_enough_and_have_not_heard_of_all_are_told_of_whom():
    with Solution(UNHEARD).attempt() as attempt:
        total = Sum(8, 50, seed=1)
        total.run([attempt] * 8)
    assert re.fullmatch(r"rank \d returned before any message could have brought it data of rank \d", total.wrong)


def test_the_ring_may_be_written_with_operations_in_progress():
    source = solution().replace("pieces[(i - step - 1) % size] += comm.recv(left)", "arrive()")
    source = source.replace(
        "        comm.send(pieces[(i - step) % size], right)\n        arrive()\n",
        "        coming = comm.irecv(left)\n"
        "        comm.isend(pieces[(i - step) % size], right).wait()\n"
        "        pieces[(i - step - 1) % size] += coming.wait()\n",
    )
    assert "coming.wait()" in source and "arrive()" not in source
    with Solution(source.replace("x.nbytes < SHORT", "False")).attempt() as attempt:
        total = Sum(5, 50, seed=1)
        total.run([attempt] * 5)
    assert not total.wrong and total.alike


@pytest.mark.parametrize(
    ("worker", "said"),
    slow_except(
        2,
        [
            ("return None", r"rank 0 returned NoneType; expected an array of shape \(\d+,\)"),
            (
                "return task.start()[1:]",
                r"rank 0 returned an array of shape \(\d+,\); expected an array of shape \(\d+,\)",
            ),
            ("comm.send(1.0, comm.rank ^ 1)", "solution sent a float; messages are arrays"),
            ("comm.all_reduce(task.start())", "all_reduce"),
        ],
    ),
)
def test_what_is_no_sum_of_vectors_is_told_in_a_sentence(worker, said):
    assert re.search(said, marks(f"def worker(comm, task, s):\n    {worker}\n")[2])


def test_a_sum_that_sends_too_little_or_was_not_heard_of_is_seen():
    total = Sum(4, 10, seed=1)
    heard = Heard(4)
    assert heard.missing() == "rank 0 returned before any message could have brought it data of rank 1"
    heard.of = [{0, 1, 2, 3}] * 4
    assert heard.missing() == ""
    few = SimpleNamespace(summary={"bytes": 2 * 3 * 40 - 1})
    assert total._unsent(few) == "all ranks together sent 239 bytes, but a sum needs 240"
