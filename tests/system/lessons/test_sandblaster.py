"""The check of the chapter on Sandblaster: near misses of its exercise lose the marks that they should lose."""

import re

import pytest

import lessons
from lessons.grading.grader import grade
from tests.system.lessons.near_misses import begun, grade_here, lost, solution
from tests.tiers import slow_except

CHAPTER = lessons.chapter("sandblaster")
RIGHT, QUICK, LOST, TWICE, ONCE = [
    "every step sums every portion exactly once",
    "a slow worker holds nobody up",
    "a lost worker does not stop it",
    "few portions are computed twice",
    "w is sent to a worker at most once per step",
]
COUNTS = "if began == step and portion not in done:\n                done"
COPY = "    return min(late, key=late.count, default=None)"


@pytest.mark.slow
def test_the_start_file_waits_for_the_slow_worker_and_stops_at_a_loss():
    report = grade(CHAPTER, begun("sandblaster"), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [QUICK, LOST, TWICE, ONCE]
    assert report.score == 27
    assert report.error.startswith("when worker ")


@pytest.mark.slow
def test_who_makes_no_copies_waits_for_the_slow_worker_and_earns_nothing_for_making_few():
    assert lost("sandblaster", solution("sandblaster", (COPY, "    return None"))) == (60, [QUICK, TWICE])


@pytest.mark.slow
@pytest.mark.parametrize(
    "slip",
    [(COUNTS, COUNTS.replace(" and portion not in done", "")), ("rate * total", "rate * total / s.portions")],
    ids=["a portion twice", "divided by the portions"],
)
def test_a_slip_in_the_sum_of_all_portions_loses_the_mark_for_the_sum_alone(slip):
    report = grade(CHAPTER, solution("sandblaster", slip), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [RIGHT] and report.score == 73
    assert "is not w - learning_rate" in report.marks[0].observed


@pytest.mark.slow
def test_a_sum_that_is_wrong_only_where_a_worker_was_lost_loses_that_mark_alone():
    twice = (
        "                if began == step and portion not in done and (",
        "                total *= 2\n                if began == step and portion not in done and (",
    )
    assert lost("sandblaster", solution("sandblaster", twice)) == (80, [LOST])


@pytest.mark.slow
def test_any_order_of_copies_will_do():
    newest = ("late = [", "late = list(reversed(["), ("not in done]\n    return", "not in done]))\n    return")
    for changes in (newest, ((COPY, "    return min(late, default=None)"),)):
        assert lost("sandblaster", solution("sandblaster", *changes)) == (100, [])


@pytest.mark.slow
def test_copies_from_the_beginning_of_a_step_cost_work_and_time():
    eager = (
        "    if pending and len(busy) % 2 == 0:\n        return pending.pop()",
        "    if pending:\n        return pending.pop()",
    )
    source = solution(
        "sandblaster",
        (eager[1], eager[0]),
        (COPY, f"    return late[0] if late else {'pending.pop() if pending else None'}"),
    )
    score, marks = lost("sandblaster", source)
    assert TWICE in marks and QUICK in marks and score < 70


@pytest.mark.slow
def test_who_sends_w_with_every_portion_loses_the_mark_for_traffic():
    always = ("portion if known.get(rank) == step else (w, portion)", "(w, portion)")
    assert lost("sandblaster", solution("sandblaster", always)) == (87, [ONCE])


@pytest.mark.slow
def test_who_forgets_the_portion_of_a_lost_worker_loses_that_mark():
    report = grade(CHAPTER, solution("sandblaster", ("pending.append(portion)", "pass")), seed=5)
    assert [mark.name for mark in report.marks if not mark.earned] == [LOST]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (COUNTS, COUNTS.replace("began == step and ", ""), "of 9. portions computed at its w"),
        ("while len(done) < s.portions:", "while len(done) < s.portions - 1:", "gradients of 9. of 9. portions"),
        ("while len(done) < s.portions:", "while False:", "gradients of 0 of 9. portions"),
        ("known.get(rank) == step", "rank in known", "gradients of 0 of 9. portions"),
        ("        task.report(w)\n", "        task.report(w)\n        task.report(w)\n", "of 0 of 9. portions"),
    ],
)
def test_a_step_without_all_of_its_portions_earns_nothing(old, new, told):
    report = grade(CHAPTER, solution("sandblaster", (old, new)), seed=5)
    assert report.score == 0, report
    assert re.search(told.replace("9.", r"\d+"), report.marks[0].observed), report.marks[0].observed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    slow_except(
        3,
        [
            (
                "else (w, portion), rank)",
                "else (w, 1.5), rank)",
                r"coordinator sent a tuple of 2 to a worker; expected \(w, portion\)",
            ),
            ("else (w, portion), rank)", "else (w, s.portions), rank)", "coordinator sent a tuple of 2 to a worker"),
            ("else (w, portion), rank)", "else w, rank)", "coordinator sent ndarray to a worker"),
            ("else (w, portion), rank)", "else portion, rank)", "was given portion .*, but was never sent w"),
            (
                "else (w, portion), rank)",
                "else (w + 1, portion), rank)",
                "was sent a w other than the one last reported",
            ),
            ("        task.report(w)\n", "", "was sent a w other than the one last reported"),
            (
                "else (w, portion), rank)",
                "else (w, portion), 0)",
                "coordinator sent something to rank 0; workers are ranks 1 to",
            ),
            ("(*free, *busy)", "free", "after update 5 nobody can continue"),
            ("total += g", "total += comm.recv(rank)", "there is no comm.recv here"),
            ("total += g", "total += task.gradient(w)[1]", "there is no task.gradient here"),
            ("total += g", "total += task.portion(w, portion)[1]", "no task.portion|no 'portion'|has no portion"),
        ],
    ),
)
def test_a_mistake_is_told_in_a_sentence(old, new, said):
    error = grade_here("sandblaster", solution("sandblaster", (old, new))).error
    assert re.search(said, error), error
