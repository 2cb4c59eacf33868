"""Exercises where courses grade: a zip for Gradescope, which grades by itself, and a notebook for nbgrader."""

import json
import os
import subprocess
import sys
import zipfile

import pytest
from click.testing import CliRunner

import lessons
from lessons.cli.main import main

CHAPTER = lessons.chapter("pipelines")  # whose check needs the fewest kernels


def call(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def place(tmp_path):
    """A folder as Gradescope's image has it, with this Python where `setup.sh` would install one."""
    made = call("grade", "--gradescope", CHAPTER.name, "--out", tmp_path / "autograder.zip", "--seed", 7)
    assert made.exit_code == 0 and "15 points" in made.output.replace("\n", " "), made.output
    with zipfile.ZipFile(tmp_path / "autograder.zip") as archive:
        for entry in archive.infolist():
            (tmp_path / archive.extract(entry, tmp_path / "source")).chmod(entry.external_attr >> 16 & 0o777)
    (tmp_path / "submission").mkdir()
    (tmp_path / "venv/bin").mkdir(parents=True)
    python = tmp_path / "venv/bin/python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    return tmp_path


def results(place):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [place / "source/run_autograder"], env=environment | {"AUTOGRADER": str(place)}, check=True, cwd=place
    )
    return json.loads((place / "results/results.json").read_text("utf-8"))


@pytest.mark.slow
def test_the_zip_grades_a_hand_in_by_itself_and_gives_everybody_the_same_cases(place):
    (place / "submission/mine.py").write_text((CHAPTER.folder / "solution.py").read_text("utf-8"))
    graded = results(place)
    assert sum(test["score"] for test in graded["tests"]) == sum(test["max_score"] for test in graded["tests"]) == 15
    assert graded["extra_data"]["chapter"] == CHAPTER.name and graded["extra_data"]["seed"] == 7


def test_no_file_and_two_files_get_a_sentence_and_no_points(place):
    assert results(place) == {"score": 0, "output": "0 Python files were handed in; one is expected."}
    for name in ("one.py", "two.py"):
        (place / "submission" / name).write_text("x = 1")
    assert results(place)["output"].startswith("2 Python files")


def test_the_zip_has_all_that_it_installs_and_nothing_of_this_machine(place):
    source = place / "source"
    assert (source / "setup.sh").stat().st_mode & 0o111
    assert "\nCHAPTER=pipelines\nSEED=7 " in (source / "run_autograder").read_text()
    assert all("==" in line for line in (source / "requirements.txt").read_text().splitlines())
    assert not [*source.rglob("__pycache__")] and not (source / "lockstep/tests").exists()


def test_a_chapter_without_an_exercise_is_refused(tmp_path, draft):
    for name in (draft, "nothing"):
        done = call("grade", "--gradescope", name, "--out", tmp_path / "x.zip")
        assert done.exit_code == 2 and name in done.output and not [*tmp_path.glob("*.zip")], done.output


def test_a_notebook_for_nbgrader_has_cells_that_end_with_the_points_of_their_marks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = call("grade", "--nbgrader", CHAPTER.name, "--out", "ps.ipynb", "--seed", 7)
    assert made.exit_code == 0, made.output
    cells = {cell["id"]: cell for cell in json.loads((tmp_path / "ps.ipynb").read_text("utf-8"))["cells"]}
    first, *rest = cells["solution"]["source"].splitlines()
    assert first == "%%writefile solution.py" and rest[-1].strip() == "### END SOLUTION"
    compile("\n".join(rest), "solution.py", "exec")
    (tmp_path / "solution.py").write_text((CHAPTER.folder / "solution.py").read_text("utf-8"))
    names, earned = {}, {}
    for name, cell in cells.items():
        if points := cell["metadata"]["nbgrader"].get("points"):
            shown, hidden = cell["source"].split("### BEGIN HIDDEN TESTS\n")
            *deeds, value, end = hidden.splitlines()
            exec("\n".join(deeds), names)
            earned[name] = eval(value, names), points
            assert end == "### END HIDDEN TESTS" and shown.startswith("# ") and cell["metadata"]["nbgrader"]["locked"]
    assert all(got == points for got, points in earned.values()) and sum(p for _, p in earned.values()) == 15


def test_one_place_to_grade_is_named():
    for words in ([], ["--gradescope", "pipelines", "--nbgrader", "pipelines"]):
        done = call("grade", *words)
        assert done.exit_code == 2 and "--gradescope CHAPTER, or --nbgrader CHAPTER" in done.output
