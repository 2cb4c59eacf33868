"""The concept inventory: its questions are those of the quizzes, and its statistics are what a hand computes."""

import csv
import json
from itertools import combinations

import pytest
from click.testing import CliRunner

import lessons
from lessons import inventory, inventory_report
from lessons.cli.main import main
from lessons.inventory import ConceptChoice, ConceptQuestion, Sitting

THREE = tuple(
    ConceptQuestion(
        name,
        "?",
        (ConceptChoice(key="yes", says="Yes"), ConceptChoice(key="no", says="No", misconception=misconception)),
    )
    for name, misconception in (("a", "linear"), ("b", "linear"), ("c", "root"))
)


def sitting(student, when, marks):
    """What a student answered to a, b and c: "+" right, "-" wrong, "." nothing."""
    said = {"+": "yes", "-": "no"}
    answers = {one.name: said[mark] for one, mark in zip(THREE, marks, strict=True) if mark in said}
    return Sitting(lockstep_inventory=3, student=student, when=when, answers=answers)


CLASS = [
    sitting("Ada", "before", "+--"), sitting("Ada", "after", "++-"),
    sitting("Ben", "before", "---"), sitting("Ben", "after", "+++"),
    sitting("Cy", "before", "+++"), sitting("Cy", "after", "++."),
    sitting("Di", "before", "-+-"),
]  # fmt: skip


@pytest.fixture
def command():
    return lambda *words, **how: CliRunner().invoke(main, list(words), **how)


def test_there_are_questions_of_all_chapters_as_the_quizzes_have_them():
    every = inventory.questions()
    assert len({one.name for one in every}) == len(every) > 40
    assert {one.name.partition(".")[0] for one in every} == {one.name for one in lessons.written_chapters()}
    for one in every:
        chapter, _, name = one.name.partition(".")
        item = lessons.chapter(chapter).item(name)
        if item.choices:
            assert [option.key for option in one.options] == [choice.key for choice in item.choices]
            assert [option.says for option in one.options] == [choice.says for choice in item.choices]
        else:
            assert len(one.options) == 4
            assert not [option.says for option in one.options if "e+" in option.says]


def test_every_wrong_choice_is_a_named_misconception_and_every_name_is_used():
    every = inventory.questions()
    assert all([one.misconception for one in question.options].count("") == 1 for question in every)
    assert {one.misconception for question in every for one in question.options} - {""} == (
        inventory.misconceptions().keys()
    )


def test_numbers_of_wrong_formulas_are_outside_the_tolerance_of_the_answer_and_apart_from_each_other():
    for one in inventory.questions():
        chapter, _, name = one.name.partition(".")
        item = lessons.chapter(chapter).item(name)
        if not item.choices:
            values = {option.key: float(option.says.split()[0]) for option in one.options}
            truth = values.pop(inventory.RIGHT)
            assert not any(item.right(value, truth) for value in values.values()), one.name
            assert all(abs(a - b) > 0.1 * max(a, b) for a, b in combinations(values.values(), 2)), one.name


def test_a_seed_fixes_the_order_of_questions_and_choices():
    assert inventory.shuffle_questions(3) == inventory.shuffle_questions(3) != inventory.shuffle_questions(4)
    first = inventory.questions()[0]
    orders = {tuple(one.key for one in first.shuffle_choices(seed)) for seed in range(20)}
    assert first.shuffle_choices(3) == first.shuffle_choices(3) and len(orders) > 5


def test_the_normalised_gain_is_the_share_of_what_could_be_gained():
    ada, ben, cy, di = inventory_report.students(CLASS, THREE)
    assert (ada.before, ada.after, ada.gain) == (1, 2, 0.5)  # one of two
    assert (ben.before, ben.after, ben.gain) == (0, 3, 1.0)
    assert (cy.before, cy.after, cy.gain) == (3, 2, None)  # nothing was left to gain
    assert (di.before, di.after, di.gain) == (1, None, None)
    assert inventory_report.mean_gain([ada, ben, cy, di]) == 0.75
    assert inventory_report.mean_gain([cy, di]) is None
    assert inventory_report.gain_of_means([ada, ben, cy, di]) == pytest.approx(3 / 5)  # from 4 to 7 of 9
    assert inventory_report.gain_of_means([di]) is None
    lost = [sitting("Ed", "before", "++-"), sitting("Ed", "after", "+--")]
    assert inventory_report.students(lost, THREE)[0].gain == -1.0


def test_difficulty_is_the_share_of_right_answers_in_each_sitting():
    a, b, c = inventory_report.statistics(CLASS, THREE)
    assert (a.before, b.before, c.before) == (0.5, 0.5, 0.25)
    assert (a.after, b.after) == (1.0, 1.0) and c.after == pytest.approx(1 / 3)  # no answer is a wrong one


def test_discrimination_is_the_point_biserial_correlation_with_the_score_on_the_other_questions():
    # a: 1 0 1 0, less its mean 1/2 -1/2 1/2 -1/2; b and c: 2 0 1 1, less its mean 1 -1 0 0; r = 1 / sqrt(1 * 2)
    some = [sitting(name, "before", marks) for name, marks in zip("WXYZ", ("+++", "---", "++-", "-+-"), strict=True)]
    found = inventory_report.statistics(some, THREE)
    assert found[0].discrimination == pytest.approx(0.5**0.5)
    alike = inventory_report.statistics([sitting("Ada", "before", "+--"), sitting("Ben", "before", "+++")], THREE)
    assert alike[0].discrimination is None  # all were right


def test_misconceptions_are_counted_over_questions_before_and_after():
    a, b, c = inventory_report.statistics(CLASS, THREE)
    assert (a.chosen, b.chosen, c.chosen) == ({"linear": 2}, {"linear": 2}, {"root": 4})
    assert {*inventory_report.misconceptions(CLASS, THREE)} == {("linear", 4, 0), ("root", 3, 1)}


def test_a_student_with_two_files_of_one_kind_is_told():
    with pytest.raises(ValueError, match="Ada has two answer files from before"):
        inventory_report.students([CLASS[0], CLASS[0]], THREE)


def test_a_class_takes_the_inventory_in_the_terminal_and_is_reported(command, tmp_path):
    def answers(seed, right):
        letters = []
        for number, question in enumerate(inventory.shuffle_questions(seed)):
            keys = [one.key for one in question.shuffle_choices(seed)]
            letters.append("abcdefgh"[keys.index(question.right)] if number < right else "-")
        return "\n".join(letters) + "\n"

    many = len(inventory.questions())
    few, more = many - 32, many - 16  # the gain is half of what was wrong before
    for file, when, seed, right in (("ada", "before", 3, few), ("ada2", "after", 4, more), ("ben", "before", 5, many)):
        words = ("inventory", f"--{when}", str(tmp_path / f"{file}.json"), "--seed", str(seed), "--student", file[:3])
        done = command(*words, input=answers(seed, right))
        assert done.exit_code == 0 and f"{many} of {many}" in done.output
        assert command(*words).exit_code == 2  # no answers are overwritten
    (tmp_path / "other.json").write_text("{}")
    done = command("inventory", "--report", str(tmp_path), "--csv", str(tmp_path / "class.csv"))
    assert done.exit_code == 0 and "Class mean gain: 0.50" in done.output and "other.json: " in done.output
    with (tmp_path / "class.csv").open() as table:
        assert [*csv.reader(table)] == [
            ["student", "before", "after", "gain"], ["ada", str(few), str(more), "0.50"], ["ben", str(many), "", ""]
        ]  # fmt: skip
    with (tmp_path / "class-items.csv").open() as table:
        assert len([*csv.reader(table)]) == many + 1
    kept = json.loads((tmp_path / "ada.json").read_text())
    assert kept["when"] == "before" and kept["seed"] == 3 and len(kept["answers"]) == few


def test_files_that_the_inventory_did_not_write_are_told_in_a_sentence(command, tmp_path):
    good = sitting("Ada", "before", "...").model_dump()
    for wrong, said in (
        ({"answers": {"stragglers.nothing": "right"}}, "has no question"),
        ({"answers": {"stragglers.speed_up": "seven"}}, "has no choice"),
        ({"when": "meanwhile"}, "when"),
        *(({"lockstep_inventory": n}, "lockstep_inventory.*this version's") for n in (1, 2)),  # of fewer questions
    ):
        with pytest.raises(ValueError, match=said):
            inventory.read(json.dumps(good | wrong))
    assert "no answer files" in command("inventory", "--report", str(tmp_path)).output
    assert "give one of" in command("inventory").output
