"""Claims are tried under seeds that nobody has looked at, and what breaks is told with its numbers."""

from types import SimpleNamespace

import pytest

import lessons
from lessons import fresh
from lessons.figure import figure
from lessons.quiz import Choice, Item
from lessons.seeds import SEEDS


@pytest.fixture
def chapter(monkeypatch):
    """A chapter whose figure ends higher under seed 102, cannot be run under 103, and whose quiz answers otherwise."""

    @figure("Does it fall?", source="nobody", claims={"it ends below one": lambda rows: rows[0]["loss"] < 1})
    def fall(run):
        if run.seed == 103:
            raise ValueError("the best rate is at an end")
        return [{"loss": 2.5 if run.seed == 102 else 0.5 + run.seed / 1e4, "steps": 7}]

    item = Item(
        "grows", "Does it grow?", "grows", "It is {answer}.", choices=(Choice("yes", "Yes."), Choice("no", "No."))
    )
    made = SimpleNamespace(
        name="tiny",
        figure_questions={"tiny.fall": "Does it fall?"},
        items=(item, Item("half", "Half of four?", "half", "It is two.")),
        golden=SimpleNamespace(answers={"grows": [({}, "yes")], "half": [({}, 2.0)]}),
    )
    monkeypatch.setattr(Item, "compute_under", lambda item, run, *_: "no" if run.seed == 104 else "yes")
    monkeypatch.setattr(lessons, "chapter", lambda name: made)
    monkeypatch.setattr(lessons, "find", lambda name: fall)
    return made


def broken(trial, of):
    return trial.breaks(of, lambda: None)


def test_a_claim_that_breaks_is_told_with_its_seed_and_the_numbers_that_it_reads(chapter):
    fall, _ = fresh.trials("tiny")
    assert broken(fall, range(100, 103)) == [fresh.Break(102, "it ends below one", [{"loss": 2.5}])]
    assert broken(fall, range(104, 106)) == []


def test_a_figure_that_a_seed_cannot_run_is_a_finding_and_others_are_still_tried(chapter):
    found = broken(fresh.trials("tiny.fall")[0], range(101, 104))
    assert [one.seed for one in found] == [102, 103] and "the best rate is at an end" in found[1].claim


def test_a_claim_that_fails_on_the_rows_of_a_seed_is_a_finding():
    shown = figure("?", source="nobody", claims={"it is half": lambda rows: rows[1]["loss"] < 1})(lambda run: [{}])
    [found] = fresh.not_shown(shown, [100], lambda: None)
    assert found.claim.startswith("it is half: IndexError")


def test_a_choice_that_a_seed_answers_otherwise_is_told_and_numbers_are_not_asked(chapter):
    fall, grows = fresh.trials("tiny")
    assert (fall.name, grows.name) == ("tiny.fall", "tiny.grows")
    [found] = broken(grows, range(103, 106))
    assert found.seed == 104 and "yes" in found.claim and "no" in found.claim


def test_seeds_that_are_drawn_are_in_a_row_and_none_that_is_recorded():
    drawn = [fresh.draw(5) for _ in range(20)]
    assert len({*drawn}) > 1 and {len(of) for of in drawn} == {5}
    assert min(of[0] for of in drawn) > max(SEEDS)


def test_what_cannot_be_tried_is_refused_with_what_can(chapter):
    with pytest.raises(ValueError, match=r"tiny\.rise cannot be tried.*tiny\.fall, tiny\.grows"):
        fresh.trials("tiny.rise")
