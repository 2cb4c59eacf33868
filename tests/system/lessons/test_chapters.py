"""Chapters: every one with a text has all its parts, and its text says nothing that is not in a row."""

import importlib
import re
from dataclasses import replace

import pytest

import lessons
from lessons import golden, markup, seeds
from lessons.chapters import Chapter
from lessons.grading.grader import grade
from lessons.instructor import sheet
from tests import margin
from tests.book import pick_seed, unfolded

WRITTEN = lessons.written_chapters()
GRADED = [one for one in WRITTEN if one.exercise]
each = pytest.mark.parametrize("chapter", WRITTEN, ids=lambda one: one.name)
each_of_all = pytest.mark.parametrize("chapter", [*map(lessons.chapter, lessons.CHAPTERS)], ids=lambda one: one.name)
each_exercise = pytest.mark.parametrize("chapter", GRADED, ids=lambda one: one.name)


@each
def test_it_has_a_text_a_quiz_an_exercise_a_check_and_a_lab_sheet(chapter):
    assert {
        "text.md",
        "experiments",  # a file or a folder
        "golden.json",
        "quiz.toml",
        "answers.py",
        "exercise.py",
        "check.py",
        "exercise.toml",
        "solution.py",
        "lab.md",
        "lab.py",
        "lab.json",
    } <= {path.name.replace("experiments.py", "experiments") for path in chapter.folder.iterdir()}
    assert chapter.text().startswith("# ") and chapter.title()
    assert len(chapter.items) >= 4


@each
def test_its_marks_are_understood(chapter):
    blocks = [*unfolded(chapter.blocks())]
    assert any(isinstance(block, markup.LiveFigure) for block in blocks)
    assert not any("{{ " in block.markdown for block in blocks if isinstance(block, markup.Text))
    assert markup.blocks(sheet.handout(chapter), chapter.name, chapter.golden)


@each_of_all
def test_the_golden_file_has_what_is_shown_declared_and_asked_and_nothing_else(chapter):
    """Of figures that no text shows those that take long are recorded, so that one seed of them is run again."""
    assert chapter.figures and set(chapter.figures) <= set(chapter.golden.figures)
    assert set(chapter.golden.figures) <= {*chapter.figures, *chapter.figure_questions}
    assert set(chapter.golden.answers) == {item.name for item in chapter.items}
    for item in chapter.items:
        assert [drawn for drawn, _ in chapter.golden.answers[item.name]] == item.all_parameters()


@each_of_all
def test_its_golden_figures_ask_claim_and_look_as_the_figures_do(chapter):
    for name, kept in chapter.golden.figures.items():
        figure = lessons.find(name)
        now = golden.record_figure(name, figure, {seed: kept.under(seed) for seed in kept.seeds}, kept.runs)
        assert golden.differences(kept.rows, now.rows) == []
        assert replace(now, **{name: getattr(kept, name) for name in ("rows", "samples", "claims", "kernels")}) == kept
        assert [*kept.claims] == [*now.claims] and all(map(kept.shows, kept.claims))
        if kept.samples:  # what no seed changes may be claimed of more digits than the file has
            assert all(map(now.shows, now.claims)), "a seed does not show what is claimed"
            assert all(holds(kept.rows) for holds in figure.claims.values()), "the means do not show it"


@each_of_all
def test_every_claim_holds_if_seeds_lie_a_quarter_farther_apart(chapter):
    for name, kept in chapter.golden.figures.items():
        thin = margin.thin_claims(lessons.find(name), [kept.under(seed) for seed in kept.seeds]) if kept.samples else []
        assert thin == [], f"{name}: loosen these, or average more runs"


@each
def test_every_measured_number_in_its_text_comes_from_a_row(chapter):
    """A decimal point outside of marks, formulas, code, tables' heads and sources reveals a typed number."""
    text, *sources = re.split(r"(?m)^## Sources", chapter.text())
    assert sources
    for pattern in (r"(?s)```.*?```", r"(?s)\$\$.*?\$\$", r"\$[^$]*\$", r"\{\{ .*? \}\}", r"`[^`]*`"):
        text = re.sub(pattern, "", text)
    assert re.findall(r".{0,30}\d\.\d.{0,10}", text) == []


@each
def test_it_writes_every_share_as_figures_do_with_a_space_before_the_percent_sign(chapter):
    shown = "".join(block.markdown for block in unfolded(chapter.blocks()) if isinstance(block, markup.Text))
    asked = (chapter.folder / "quiz.toml").read_text("utf-8")
    assert re.findall(r".{0,30}\d(?:%|\s+percent\b).{0,10}", shown) == []
    assert re.findall(r".{0,30}[\d}](?:%| percent\b).{0,10}", asked) == []


@each
def test_its_predictions_are_questions_of_its_quiz(chapter):
    asked = [block.item for block in chapter.blocks() if isinstance(block, markup.Predict)]
    assert asked and all(chapter.item(name) for name in asked)


@each
def test_every_wrong_choice_says_why_it_is_wrong(chapter):
    for item in chapter.items:
        right = {answer for _, answer in chapter.golden.answers[item.name]}
        assert right <= {choice.key for choice in item.choices} or not item.choices
        assert all(choice.but for choice in item.choices if right != {choice.key})


@pytest.mark.slow
@each_exercise
def test_a_perfect_solution_gets_all_marks(chapter):
    report = grade(chapter, (chapter.folder / "solution.py").read_text(), seed=11)
    assert report.score == 100, report


@pytest.mark.slow
@each_exercise
def test_the_file_to_begin_with_works_but_does_not_pass(chapter):
    report = grade(chapter, f"{chapter.exercise}\nmine = 1\n", seed=12)  # as it is, it earns nothing at all
    assert report.score < 60, report
    assert importlib.import_module(f"lessons.{chapter.name}.exercise").TARGETS


@pytest.mark.slow
@pytest.mark.usefixtures("rates_are_stated")
@each
def test_its_quiz_is_answered_as_it_was_under_one_of_the_seeds(chapter):
    for item in chapter.items:
        recorded = chapter.golden.answers[item.name]
        for (drawn, answer), by_seed in zip(recorded, chapter.golden.samples[item.name], strict=True):
            assert golden.differences([{"answer": answer}], [{"answer": item.combine_seeds(by_seed)}]) == []
            place = pick_seed(chapter.name, range(len(by_seed)))
            run = seeds.Seeded(seeds.SEEDS[place])
            now = item.compute_under(run, chapter.name, drawn)
            spread = seeds.spread([[{"answer": one}] for one in by_seed])
            assert golden.differences([{"answer": by_seed[place]}], [{"answer": now}], spread) == [], (item.name, drawn)
            assert len(by_seed) > 1 or not run.used, "it depends on the seed, and was recorded under one alone"


def test_a_chapter_without_a_text_has_a_title(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    chapter = Chapter(folder)
    assert (chapter.has_text, chapter.title(), chapter.text()) == (False, "Tiny", "")
    (folder / "text.md").write_text("# One\n\nwords\n")
    (folder / "lab.md").write_text("# Lab\n")
    assert (chapter.title(), chapter.lab()) == ("One", "# Lab\n")


def test_an_unknown_chapter_is_refused_with_a_hint():
    with pytest.raises(ValueError, match="did you mean stragglers"):
        lessons.chapter("straglers")
