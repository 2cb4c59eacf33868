"""Calls of comm and task with what they cannot take: a sentence says what they take, and what was given."""

import numpy as np
import pytest

from lessons.grading.contract import check
from lessons.grading.hosted import CALLS, SENT, HostedRank, Quota, SolutionError

WRONG = {
    "task.at takes a whole number of steps from 0, but got 'x'.": ("at", "x"),
    "task.at takes a whole number of steps from 0, but got -1.": ("at", -1),
    "task.at takes a whole number of steps from 0, but got True.": ("at", True),
    "task.measure takes the name of a quantity, a text of 1 to 60 characters, but got [1].": ("measure", [1], 1.0),
    "task.measure takes a number as the value of a quantity, but got '1'.": ("measure", "gap", "1"),
    "task.measure takes a number as the value of a quantity, but got inf.": ("measure", "gap", float("inf")),
    "comm.send takes a tag that is a whole number from 0 to 2147483647, but got 'x'.": ("send", 1.0, 0, "x"),
    "comm.send takes a tag that is a whole number from 0 to 2147483647, but got nan.": ("send", 1.0, 0, float("nan")),
    "comm.send takes the number of a rank, from 0 to 3, but got 4.": ("send", 1.0, 4),
    "comm.send takes a message: None, a number, an array, or a tuple of these, but got [1, 2].": ("send", [1, 2], 1),
    "comm.recv takes the number of a rank, from 0 to 3, but got None.": ("recv", None),
    "comm.recv_any takes a tag that is a whole number from 0 to 2147483647, but got 1.5.": ("recv_any", 1.5),
    "task.report takes a vector of 3 floats, as task.start() returns it, but got [1, 2].": ("report", [1, 2]),
    "task.gradient takes a vector of 3 floats, as task.start() returns it, but got None.": ("gradient", None),
    "comm.broadcast takes the number of a rank, from 0 to 3, but got -1.": ("broadcast", 1.0, -1),
    "comm.split takes a color, a whole number from 0 or None, but got 'a'.": ("split", "a"),
}


class Task:
    def start(self):
        return np.zeros(3)

    def measure(self, quantity, value):
        self.measured = quantity, value


class Comm:
    size = 4

    def send(self, x, dst, tag=0):
        self.sent = x


def test_a_wrong_call_is_told_with_what_is_taken_and_what_was_given():
    rank = HostedRank(Comm(), Task())
    for sentence, (what, *given) in WRONG.items():
        with pytest.raises(SolutionError) as told:
            rank.do((what, 0, *given))
        assert str(told.value) == sentence


def test_a_vector_of_another_length_or_kind_is_shown_by_its_shape():
    rank = HostedRank(Comm(), Task())
    for wrong in (np.zeros(4), np.zeros((3, 1)), np.zeros(3, int)):
        with pytest.raises(SolutionError, match=rf"3 floats.* but got an array of {wrong.dtype} of shape"):
            rank.do(("report", 0, wrong))


def test_places_are_asked_of_a_start_that_takes_some_and_refused_in_a_sentence_by_one_that_does_not():
    class Numbers(Task):
        def start(self, places=None):
            return np.arange(3.0) if places is None else np.arange(3.0)[places]

    assert list(HostedRank(Comm(), Numbers()).do(("start", 0, np.array([2, 0])))) == [2, 0]
    with pytest.raises(SolutionError, match="start was called with invalid arguments"):
        HostedRank(Comm(), Task()).do(("start", 0, np.array([2, 0])))


def test_a_check_may_say_what_a_method_of_its_task_takes():
    class Layers(Task):
        takes = {"forward": (("the number of a layer", lambda value, *_: isinstance(value, int)),)}  # noqa: RUF012

        def forward(self, layer):
            return layer

    assert HostedRank(Comm(), Layers()).do(("forward", 0, 2)) == 2
    with pytest.raises(SolutionError, match="forward takes the number of a layer, but got an array"):
        HostedRank(Comm(), Layers()).do(("forward", 0, np.zeros(3)))


def test_what_the_contract_allows_is_not_refused():
    w = np.zeros(3)
    for what, *given in (
        ("send", (w, (1, None)), 3, 7), ("isend", None, 0), ("recv", 2), ("irecv", 2, 1), ("recv_any",), ("poll", 3),
        ("broadcast", w, 1), ("all_reduce", w, "mean", True, -2), ("split", None), ("split", 3), ("measure", "gap", 2),
        ("shared", w, "atomic"), ("report", w.astype("f4")), ("at", 0), ("forward", w, None, 0), ("steps", True),
    ):  # fmt: skip
        check(what, tuple(given), 4, lambda: 3)


def test_a_wrong_call_without_a_message_of_its_own_has_one():
    class Refusing(Comm):
        def send(self, x, dst, tag=0):
            raise KeyError

    with pytest.raises(SolutionError, match="invalid arguments: KeyError"):
        HostedRank(Refusing(), Task()).do(("send", 0, 1.0, 1))


def test_what_all_ranks_of_a_run_ask_for_is_limited():
    quota = Quota()
    one, other = HostedRank(Comm(), Task(), quota), HostedRank(Comm(), Task(), quota)
    with pytest.raises(SolutionError, match="called comm and task 20000 times in one run"):
        for rank in (one, other) * CALLS:
            rank.do(("measure", 0, "gap", 1.0))
    rank, x = HostedRank(Comm(), Task()), np.zeros(SENT // 80)
    with pytest.raises(SolutionError, match="sent more than 400 MB in one run"):
        for _ in range(11):
            rank.do(("send", 0, x, 1))
