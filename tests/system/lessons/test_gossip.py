"""The check of the chapter on gossip: near misses of its exercise lose the marks that they should lose."""

import re

import pytest

import lessons
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, grade_here, lost, solution
from tests.tiers import slow_except

CHAPTER = lessons.chapter("gossip")
RIGHT, WAITS, AGREED, SENT, CRASH = [
    "nothing of a model is lost, and nothing is added",
    "nobody waits for a slow worker",
    "all soon agree on the mean, whichever worker is slow",
    "a worker sends one message in a step",
    "a crashed worker does not stop the others",
]
RING = "others[distances[step % len(distances)] - 1]", "others[0]"
SEND = "        comm.send((x, p), partner(others, step))\n"


@pytest.mark.slow
def test_the_start_file_waits_agrees_slowly_and_stops_at_a_crash():
    report = grade(CHAPTER, begun("gossip"), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [WAITS, AGREED, CRASH] and report.score == 31
    assert report.error.startswith("when worker ")


@pytest.mark.slow
def test_who_always_sends_to_the_next_rank_loses_the_mark_for_agreement():
    assert lost("gossip", solution("gossip", RING)) == (75, [AGREED])


@pytest.mark.slow
def test_a_random_partner_will_do():
    random = solution("gossip", ("others[distances[step % len(distances)] - 1]", "random.choice(others)"))
    assert lost("gossip", f"import random\n{random}") == (100, [])


TRACES = {
    "of both": ("x, p = x / 2, p / 2", "more, x, p = 1e-7 * x, x * (1 - 1e-7), p * (1 - 1e-7)", "(more, 1e-7 * p)"),
    "of p": ("x, p = x / 2, p / 2", "more, x, p = x / 2, x / 2, p * (1 - 1e-7)", "(more, 1e-7 * p)"),
    "of x": ("x, p = x / 2, p / 2", "more, x, p = 0 * x, x, p / 2", "(more, p)"),
}


@pytest.mark.slow
@pytest.mark.parametrize("trace", TRACES)
def test_a_worker_that_sends_a_trace_of_what_it_holds_averages_nothing_and_earns_nothing(trace):
    old, new, message = TRACES[trace]
    report = grade(CHAPTER, solution("gossip", (old, new), ("comm.send((x, p), ", f"comm.send({message}, ")), seed=5)
    assert report.score == 0 and "on average; a half is required" in report.marks[0].observed, report


@pytest.mark.slow
def test_two_messages_in_a_step_lose_the_mark_for_traffic():
    twice = SEND + "        x, p = x / 2, p / 2\n" + SEND.replace("step)", "step + 1)")
    assert lost("gossip", solution("gossip", (SEND, twice))) == (88, [SENT])


@pytest.mark.slow
def test_who_goes_on_sending_to_a_crashed_worker_loses_that_mark():
    assert lost("gossip", solution("gossip", ("others.remove(rank)", "pass"))) == (81, [CRASH])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (SEND, "        x, p = 2 * x, 2 * p\n", "sent 0 messages in"),
        ("for _ in comm.poll():", "for _ in ():", "messages unread"),
        ("for _ in comm.poll():", "for _ in comm.poll()[:1]:", "messages unread"),
    ],
)
def test_who_trains_alone_or_does_not_take_in_what_arrives_earns_nothing(old, new, told):
    report = grade(CHAPTER, solution("gossip", (old, new)), seed=5)
    assert report.score == 0, report
    assert told in report.marks[0].observed or "away from the x / p" in report.error


@pytest.mark.parametrize(
    ("old", "new", "said"),
    slow_except(
        9,
        [
            ("x, p = x + message[0], p + message[1]", "x = x + message[0]", "away from the x / p that its messages"),
            ("comm.send((x, p), ", "comm.send((x, 1.0), ", "sent a weight of 1, but holds 1; send a part of it"),
            ("comm.send((x, p), ", "comm.send(x, ", r"sent a ndarray; expected \(x, p\)"),
            ("comm.send((x, p), partner(others, step))", "comm.send((x, p), comm.rank)", "a message to itself"),
            (
                "x - s.learning_rate * g",
                "x - 2 * s.learning_rate * g",
                "in step . rank . reported a model that is up to",
            ),
            ("task.gradient(x / p)", "task.gradient(x + 1)", "in step 0 rank . took a gradient at a model"),
            ("        task.report(x / p)\n", "", "a second gradient before it had reported the step"),
            ("        _, g = task.gradient(x / p)\n", "        g = 0\n", "reported a step without a gradient"),
            ("x, p = collect(comm, x, p, others)", "comm.all_reduce(x)", "there is no comm.all_reduce here"),
            ("x, p = x + message[0], p + message[1]", "x, p = (x + message[0]) / 2, p", "away from the x / p"),
            ("comm.send((x, p), ", "comm.send((x, p, 1), ", r"sent a tuple of 3; expected \(x, p\)"),
            ("task.report(x / p)", "task.report(x)", "in step . rank . reported a model that is up to"),
        ],
    ),
)
def test_a_mistake_is_told_in_a_sentence(old, new, said):
    assert re.search(said, grade_here("gossip", solution("gossip", (old, new))).error)
