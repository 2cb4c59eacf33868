"""Quiz: parameters are drawn by seed, and guesses are compared with the simulator."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt

import lessons
from lessons import markup, quiz
from lessons.quiz import Choice, Item

NUMBER = Item("n", "{a} and {b:.1f} in $\\frac{1}{2}$?", "f", "{answer:.2f} of {a}", {"a": [1, 2, 3], "b": [0.5]})
WORDS = Item("w", "?", "f", "so", choices=(Choice("x", "It is x."), Choice("y", "It is y.", "No.")))


def test_the_same_seed_asks_the_same_and_others_ask_all_there_is():
    assert NUMBER.parameters(5) == NUMBER.parameters(5)
    assert {NUMBER.parameters(seed)["a"] for seed in range(50)} == {1, 2, 3}
    assert NUMBER.all_parameters() == [{"a": a, "b": 0.5} for a in (1, 2, 3)]


def test_a_prediction_has_the_parameters_that_surprise_and_a_quiz_draws_all():
    item = replace(NUMBER, first={"a": 3})
    assert {item.prediction(seed)["a"] for seed in range(50)} == {3}
    assert {item.parameters(seed)["a"] for seed in range(50)} == {1, 2, 3}


@pytest.mark.parametrize("name", lessons.CHAPTERS)
def test_what_a_prediction_begins_with_is_among_its_draws(name):
    for item in lessons.chapter(name).items:
        assert all(value in item.draw[key] for key, value in item.first.items()), item.name


def test_parameters_are_inserted_and_formulas_are_left_alone():
    assert NUMBER.question({"a": 2, "b": 0.5}) == "2 and 0.5 in $\\frac{1}{2}$?"
    assert NUMBER.explanation({"a": 2, "b": 0.5}, 1 / 3) == "0.33 of 2"


@pytest.mark.parametrize(("guess", "right"), [(100, True), (109, True), (91, True), (111, False), (-100, False)])
def test_a_number_is_right_within_its_bounds(guess, right):
    assert NUMBER.right(guess, 100.0) is right


def test_of_choices_one_is_right():
    assert WORDS.right("x", "x") and not WORDS.right("y", "x")
    assert WORDS.choice("y").but == "No."
    with pytest.raises(ValueError, match="it has x, y"):
        WORDS.choice("z")


def test_an_answer_is_the_mean_over_seeds_and_a_choice_is_one_for_all(monkeypatch):
    answers = SimpleNamespace(f=lambda run, a, b: a + run.seed)
    monkeypatch.setattr(quiz.importlib, "import_module", lambda name: answers)
    assert NUMBER.compute("any", {"a": 1, "b": 0.5}) == 3.0
    answers.f = lambda run: "x"
    assert WORDS.compute("any", {}) == "x"
    answers.f = lambda run: "x" if run.seed < 4 else "y"
    with pytest.raises(ValueError, match="seeds disagree on w"):
        WORDS.compute("any", {})


def test_a_file_is_read_and_one_that_is_not_right_is_refused(tmp_path):
    path = tmp_path / "quiz.toml"
    assert quiz.read(path) == ()
    path.write_text('[[item]]\nname="a"\nask="?"\nanswer="f"\nwhy="."\n[[item.choice]]\nkey="k"\nsays="K"\n')
    assert quiz.read(path) == (Item("a", "?", "f", ".", choices=(Choice("k", "K"),)),)
    path.write_text('[[item]]\nname="a"\nasks="?"\n')
    with pytest.raises(ValueError, match=r"item 'a'.*asks"):
        quiz.read(path)


def test_an_answer_that_its_explanation_begins_with_is_not_said_before():
    item = Item("one", "?", "f", "It is {answer:.0f}. So.", unit="models")
    assert item.starts_with_answer({}, 1.0) and not item.starts_with_answer({}, 1.4)
    assert not replace(item, why="No faster: {answer:.0f}.").starts_with_answer({}, 1.0)
    assert (item.unit_for(1), item.unit_for(2), replace(item, unit="micro-batches").unit_for(1)) == (
        "model", "models", "micro-batch",
    )  # fmt: skip


def test_a_quiz_asks_the_predictions_of_the_text_first_and_in_its_order():
    for chapter in lessons.written_chapters():
        asked = [block.item for block in chapter.blocks() if isinstance(block, markup.Predict)]
        names = [item.name for item in chapter.quiz]
        assert names[: len(asked)] == asked and sorted(names) == sorted(item.name for item in chapter.items)


def test_no_number_at_the_beginning_of_a_line_is_read_as_that_of_a_list():
    for chapter in lessons.written_chapters():
        for item in chapter.items:
            for drawn in item.all_parameters():
                why = item.explanation(drawn, chapter.golden.answer(item.name, drawn))
                for text in (item.question(drawn), why, *(one.but for one in item.choices)):
                    assert "<ol" not in MarkdownIt("commonmark").render(text), (chapter.name, item.name, text)
