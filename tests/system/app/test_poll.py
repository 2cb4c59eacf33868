"""The poll of predictions: counts of all sessions, and no more than counts."""

import threading
import time
from collections import Counter

import pytest

from app.guide import predict
from app.session import poll
from app.session.poll import Poll
from app.textbook.question import _others
from experiments.specification.experiment import Experiment


@pytest.fixture
def nobody():
    """Nobody has answered yet."""
    poll.here.clear()


def test_answers_are_counted_question_by_question():
    counts = Poll()
    for question, answer in (("a", "more"), ("a", "fewer"), ("a", "more"), ("b", "fewer"), ("b", "fewer")):
        counts.add(question, answer)
    assert counts.of("a") == {"more": 2, "fewer": 1} and counts.of("b") == {"fewer": 2}


def test_one_answer_alone_is_not_told():
    counts = Poll()
    counts.add("a", "more")
    assert not counts.of("a") and not counts.of("never asked")


def test_the_question_that_nobody_has_answered_for_longest_is_forgotten():
    counts = Poll(most=2)
    for question in ("old", "old", "new", "new", "old", "newest", "newest"):
        counts.add(question, "yes")
    assert not counts.of("new") and counts.of("old") == {"yes": 3} and counts.of("newest") == {"yes": 2}


class Slow(str):
    """An answer that lets others go first whenever it is looked up."""

    def __hash__(self):
        time.sleep(0)
        return super().__hash__()


def test_no_answer_is_lost_when_many_answer_at_once():
    counts, start = Poll(), threading.Barrier(8)

    def answer():
        start.wait()
        for _ in range(50):
            counts.add("a", Slow("yes"))

    crowd = [threading.Thread(target=answer) for _ in range(8)]
    for one in crowd:
        one.start()
    for one in crowd:
        one.join()
    assert counts.of("a").total() == 400


def test_what_others_said_is_told_from_less_to_more():
    assert (
        predict.among(("fewer", "as many", "more"), Counter(more=3, fewer=18))
        == "Of 21 predictions here, 18 said fewer, 3 said more."
    )
    assert predict.among(("fewer", "more"), Counter()) == ""


@pytest.mark.parametrize(
    ("said", "right", "words"),
    [
        (
            "later",
            False,
            "Of 7 first answers here, 2 were right (1 of the 5 who were sure), and 5 gave the same answer.",
        ),
        ("sooner", True, "Of 7 first answers here, 2 were right (1 of the 5 who were sure)."),
        ("", False, "Of 7 first answers here, 2 were right (1 of the 5 who were sure)."),
    ],
)
def test_who_was_wrong_hears_how_many_said_the_same(said, right, words):
    counts = Counter({("later", False, 2): 4, ("later", True, 0): 1, ("sooner", True, 2): 1, ("sooner", False, 1): 1})
    assert _others(counts, said, right) == words


def test_the_second_session_that_predicts_sees_what_both_said_and_each_counts_once(page, stored, nobody):
    stored(Experiment()), stored(Experiment(workers=8))

    def predicts(answer, opened=None):
        opened = opened or page()
        opened.button("reset").click().run()
        opened.select_slider("workers").set_value(8).run()
        opened.button_group("predict-samples_per_second").set_value(answer).run()
        opened.button("run").click().run()
        assert not opened.exception
        return opened, [caption.value for caption in opened.caption if "predictions here" in caption.value]

    one, heard = predicts("more")
    assert not heard
    one, heard = predicts("fewer", one)
    assert not heard
    _, heard = predicts("fewer")
    assert heard == ["Of 2 predictions here, 1 said fewer, 1 said more."]
