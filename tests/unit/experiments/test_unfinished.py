"""What can be drawn of a schedule that is wrong, and where it is wrong."""

import pytest

from algorithms.parts.pipeline.ops import ScheduleError
from experiments.study.schedules import Plan, study
from experiments.study.unfinished import partial_schedule

WRONG = {
    "out of order": ("0F0 0F1 0B0 0B1\n1F0 1F1 1B1 1F0", 1, "1F0", 5),
    "stuck": ("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", 0, "0B0", 1),
    "no op": ("0F0 0B0\n1F0 1X0", 1, "1X0", 2),
    "joined": ("0F0 0F1 0B0 0B1\n1F0+1B0 1F1+1X1", 1, "1X1", 6),
    "done twice": ("0F0 0B0 0F0\n1F0 1B0", 0, "0F0", 4),
    "update of another's stage": ("0F0 0B0 0U0\n1F0 1B0 0U0", 1, "0U0", 0),
    "too long a word": ("0F0 0B0\n1F0 1B0 123456789012345F0", 1, "123456789012345F0", 4),
    "missing": ("0F0 0F1 0B0\n1F0 1B0 1F1 1B1", -1, "", 7),
}


@pytest.mark.parametrize("case", WRONG)
def test_ranks_are_drawn_up_to_what_they_cannot_do_and_the_word_is_named(case):
    text, line, word, ops = WRONG[case]
    plan = Plan.of(schedule="own", own=text)
    with pytest.raises(ValueError) as refusal:
        study(plan)
    found = partial_schedule(plan)
    assert (found.line, found.word) == (line, word), str(refusal.value)
    assert (len(found.study.ops["start"]) if found.study else 0) == ops


@pytest.mark.parametrize("text", ["0F0 0F1 0B0 0B1\n1B0 1F0 1B1 1F1", "0F0 0B0\nhello 1F0 1B0"])
def test_ops_before_a_mistake_take_as_long_as_they_will_without_it(text):
    found = partial_schedule(Plan.of(schedule="own", own=text)).study
    assert set(found.ops["end"] - found.ops["start"]) == {1.0} and set(found.ops["kind"]) == {0}  # forwards


def test_a_stage_with_a_number_beyond_all_bounds_is_not_counted():
    found = partial_schedule(Plan.of(schedule="own", own="0F0 0B0\n999999F0 0F1"))
    assert (found.study.summary["stages"], found.study.summary["makespan"]) == (1, 6.0)


def test_of_text_that_begins_with_nonsense_nothing_is_drawn():
    plan = Plan.of(schedule="own", own="hello")
    found = partial_schedule(plan)
    assert found.study is None and (found.line, found.word) == (0, "hello")


def test_where_a_schedule_is_wrong_does_not_depend_on_how_the_refusal_words_it(monkeypatch):
    def refuse(_):
        raise ScheduleError("on rank 0, 0F0 is fine, but something else is not", "1B0", 1)

    monkeypatch.setattr("experiments.study.unfinished.read_own", refuse)
    found = partial_schedule(Plan.of(schedule="own", own="0F0 0B0\n1F0 1B0"))
    assert (found.line, found.word) == (1, "1B0")
