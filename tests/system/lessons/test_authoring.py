"""A chapter that was begun a moment ago has all its parts, and passes what every chapter is held to."""

import pytest
from click.testing import CliRunner

import lessons
from lessons.chapters import Chapter
from lessons.cli import authoring
from lessons.cli.main import main
from lessons.grading import levels
from lessons.grading.grader import grade
from lessons.grading.sheet import Sheet
from tests.system.lessons import test_chapters as form
from tests.system.lessons import test_exercises as exercises


@pytest.fixture
def begun(tmp_path, monkeypatch):
    """A new chapter beside those of the book, and the command line."""
    command = lambda *words: CliRunner().invoke(main, list(words))  # noqa: E731
    monkeypatch.setattr(authoring, "HOME", tmp_path)
    done = command("new", "brand_new")
    assert done.exit_code == 0 and 'Add "brand_new", to CHAPTERS' in done.output, done.output
    monkeypatch.setattr(lessons, "__path__", [*lessons.__path__, str(tmp_path)])
    monkeypatch.setattr(lessons, "CHAPTERS", (*lessons.CHAPTERS, "brand_new"))
    chapter = lessons.chapter
    monkeypatch.setattr(
        lessons, "chapter", lambda name: Chapter(tmp_path / name) if name == "brand_new" else chapter(name)
    )
    return lambda *words: command(*words), lambda: Chapter(tmp_path / "brand_new")


def test_it_is_read_recorded_asked_and_graded(begun):
    command, chapter = begun
    draft = command("show", "brand_new", "--draft")
    assert draft.exit_code == 0 and f"one tenth: ?. Figure {chapter().number}.1 shows more" in " ".join(
        draft.output.split()
    )
    done = command("golden", "brand_new")
    assert done.exit_code == 0 and "1 figures and 4 quiz items" in done.output, done.output
    done = command("lab", "brand_new", "--record")
    assert done.exit_code == 0 and "The larger rate ends at 0." in done.output, done.output
    for held in (
        form.test_it_has_a_text_a_quiz_an_exercise_a_check_and_a_lab_sheet,
        form.test_its_marks_are_understood,
        form.test_the_golden_file_has_what_is_shown_declared_and_asked_and_nothing_else,
        form.test_its_golden_figures_ask_claim_and_look_as_the_figures_do,
        form.test_every_measured_number_in_its_text_comes_from_a_row,
        form.test_its_predictions_are_questions_of_its_quiz,
        form.test_every_wrong_choice_says_why_it_is_wrong,
    ):
        held(chapter())
    assert len(chapter().front.objectives) == 2 and chapter().number == len(lessons.CHAPTERS)
    assert grade(chapter(), (chapter().folder / "solution.py").read_text(), seed=1).score == 100
    assert grade(chapter(), chapter().exercise, seed=1).score == 0


def test_its_exercise_has_hints_and_four_levels(begun):
    sheet = Sheet(begun[1]())
    exercises.test_points_and_targets_are_known_without_running_the_check(sheet)
    exercises.test_every_mark_has_hints_in_three_steps(sheet)
    for level in levels.LEVELS:
        exercises.test_a_level_passes_with_its_cut_filled_and_not_without(sheet, level)


def test_every_place_to_be_filled_is_marked(begun):
    _, chapter = begun
    todo = {path.name for path in chapter().folder.iterdir() if "WRITE" in path.read_text()}
    assert {
        "text.md",
        "chapter.toml",
        "experiments.py",
        "quiz.toml",
        "exercise.py",
        "exercise.toml",
        "lab.md",
        "lab.py",
    } <= todo


@pytest.mark.parametrize(("name", "words"), [("brand_new", "already"), ("Big-Name", "lower-case letters")])
def test_a_name_that_cannot_be_is_refused(begun, name, words):
    command, _ = begun
    done = command("new", name)
    assert done.exit_code == 2 and words in done.output and "Traceback" not in done.output
