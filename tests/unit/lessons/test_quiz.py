"""Quiz: parameters are drawn by seed, and guesses are compared with the simulator."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from markdown_it import MarkdownIt

import lessons
from lessons import inventory, markup, quiz
from lessons.quiz import Choice, Item

NUMBER = Item("n", "{a} and {b:.1f} in $\\frac{1}{2}$?", "f", "{answer:.2f} of {a}", {"a": [1, 2, 3], "b": [0.5]})
WORDS = Item("w", "?", "f", "so", choices=(Choice("x", "It is x."), Choice("y", "It is y.", "No.")))

NEVER_RIGHT = {
    "sgd.turned": ("some", "that a rotation matters a little"),
    "large_batches.start": ("none; gradual; alike", "the usual reasons for a warm-up"),
    "overlap.fifo": ("half", "half is what a reader says who forgets the order of layers"),
    "averaging.spring": ("downpour", "the third method of the figure"),
    "gossip.apart": ("alike", "that noise alone decides"),
    "sandblaster.ahead": ("alike", "that two methods with one limit are one"),
    "sandblaster.machines": ("nearly", "that machines multiply"),
    "model_parallel.node": ("eight", "that a gradient that nobody averages pays for all else"),
    "pipelines.latency": ("gpipe", "that the older schedule is the faster one"),
    "pipelines.split": ("none", "that the second half fills every hole"),
    "pipedream.worst": ("stash; none", "all three ways to read weights are asked for"),
    "pipedream.plan": ("1-1", "all plans of three machines are asked for"),
    "decoupled.stacked": ("little", "that guesses get worse little by little"),
    "decoupled.race": ("lower", "what is hoped of methods that wait for nobody"),
    "decoupled.cnn": ("below", "that it only costs a little"),
    "choosing.fastest": ("server; tensor", "all strategies of the chapter are asked for"),
    "choosing.cut": ("1-7; 1-1-1-1-1-1-1-1", "other cuts of the same machines"),
    "choosing.first": ("every; local SGD, 4", "all ways of the figure are asked for"),
    "choosing.upgrade": ("all-reduce; local", "all strategies of the figure are asked for"),
    "step_memory.which_again": ("C", "that the last layer frees as much as any other"),
    "fully_sharded.crosses": ("more", "that weights leave a node that has a copy of them"),
}
"""Item -> choices that no draw makes right, and why they are offered all the same: what a reader might think."""

CONSTANT = {
    "large_batches.start": "the other question, which start has the lowest peak, is one on which seeds disagree"
}
"""Items whose answer is the same in all draws, and why there is no other draw."""


def named_misconceptions():
    """Return (item, choice) of the wrong choices that the concept inventory counts by name."""
    return {(one.name, option.key) for one in inventory.questions() for option in one.options if option.misconception}


def test_every_choice_is_right_in_some_draw_or_is_a_named_mistake():
    never, known = {}, named_misconceptions()
    for name in lessons.CHAPTERS:
        chapter = lessons.chapter(name)
        for item in chapter.items:
            right = {answer for _, answer in chapter.golden.answers[item.name]}
            for one in item.choices:
                if one.key not in right and (f"{name}.{item.name}", one.key) not in known:
                    never.setdefault(f"{name}.{item.name}", set()).add(one.key)
    assert never == {name: {*keys.split("; ")} for name, (keys, _) in NEVER_RIGHT.items()}


def test_no_question_has_the_same_answer_in_all_its_draws():
    for name in lessons.CHAPTERS:
        chapter = lessons.chapter(name)
        for item in chapter.items:
            answers = [answer for _, answer in chapter.golden.answers[item.name]]
            spread = len(set(answers)) > 1 if item.choices else max(answers) - min(answers) > 0.02 * abs(max(answers))
            assert spread != (f"{name}.{item.name}" in CONSTANT), (name, item.name)


def test_the_longest_choice_is_no_better_guess_than_another():
    for name in lessons.CHAPTERS:
        chapter = lessons.chapter(name)
        for item in chapter.items:
            length = {one.key: len(one.says) for one in item.choices}
            *_, second, longest = sorted(length, key=length.get) or ("", "")
            answers = [answer for _, answer in chapter.golden.answers[item.name]]
            if item.choices and length[longest] > 1.3 * length[second]:
                assert answers.count(longest) < 0.6 * len(answers), (name, item.name)


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
