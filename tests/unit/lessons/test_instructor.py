"""For instructors: who sees their pages, whose solution a file is, and what other graders are told."""

import base64
import io
import json
import re
import stat
import zipfile
from pathlib import PurePosixPath

import pytest

import lessons
from lessons import instructor
from lessons.grading.grader import GradingReport, Mark
from lessons.instructor import course, formats, hand_ins, hub, sheet
from lessons.instructor.gift import gift

REPORT = GradingReport("stragglers", 60, (Mark("right", 3, 3, "40 updates"), Mark("quick", 2, 0, "1.7 times")), 5, 1.5)


@pytest.mark.parametrize(
    ("setting", "given", "shown"),
    [
        (None, "", False), (None, "1", False), ("", "", False), ("0", "0", False), ("1", "", True),
        ("sésame", "", False), ("sésame", "sesame", False), ("sésame", "sésame", True),
    ],
)  # fmt: skip
def test_pages_for_instructors_are_hidden_unless_the_setting_or_the_password_shows_them(setting, given, shown):
    environment = {} if setting is None else {instructor.SETTING: setting}
    assert instructor.is_visible(given, environment) is shown
    assert instructor.needs_password(environment) is (setting == "sésame")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("alice.py", ("alice", "")),
        ("alice/solution.py", ("alice", "")),
        ("Alice Smith_12345_assignsubmission_file_/mine.py", ("Alice Smith", "12345")),
        ("smithalice_12345_67890_mine.py", ("smithalice", "12345")),
        ("smithalice_LATE_12345_67890_mine-2.py", ("smithalice", "12345")),
    ],
)
def test_the_student_is_known_from_the_path_as_moodle_and_canvas_make_it(path, name):
    assert hand_ins.student(PurePosixPath(path)) == name


def test_a_zip_is_read_without_unpacking_and_what_is_no_hand_in_is_passed_over(tmp_path):
    pile = tmp_path / "pile.zip"
    with zipfile.ZipFile(pile, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("class/ann/a.py", "x = 1")
        archive.writestr("class/../../../bob.py", "x = 2")
        archive.writestr("class/cyd/one.py", "1")
        archive.writestr("class/cyd/two.py", "2")
        archive.writestr("class/dan/huge.py", b" " * (hand_ins.LARGEST + 1))
        archive.writestr("__MACOSX/class/ann/._a.py", "no")
        link = zipfile.ZipInfo("class/eve/link.py")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    found = {one.student: one for one in hand_ins.collect(pile, "stragglers")}
    assert [one.name for one in tmp_path.iterdir()] == ["pile.zip"]
    assert found["ann"].source == "x = 1" and "is a link" in found["eve"].trouble
    assert "2 Python files" in found["cyd"].trouble and "more than" in found["dan"].trouble


def test_students_whose_names_differ_in_what_is_not_shown_keep_a_row_each(tmp_path):
    pile = tmp_path / "pile.zip"
    with zipfile.ZipFile(pile, "w") as archive:
        for number, name in enumerate(("a\x1bb", "a\x9bb", "a\nb", "a b")):
            archive.writestr(f"{name}/mine.py", f"x = {number}")
    found = hand_ins.collect(pile, "stragglers")
    assert [one.student for one in found] == ["a b", "a\ufffdb", "a b (2)", "a\ufffdb (2)"]
    assert {one.source for one in found} == {f"x = {number}" for number in range(4)}
    assert not any(mark in one.file for one in found for mark in "\n\x1b\x9b")


def test_a_pile_of_more_students_or_more_files_than_are_read_is_refused(tmp_path):
    pile = tmp_path / "pile.zip"
    for name in ("{}/", "{}/mine.py"):
        with zipfile.ZipFile(pile, "w") as archive:
            archive.writestr("ann/mine.py", "x")
            for number in range(hand_ins.MOST):
                archive.writestr(name.format(number), "")
        with pytest.raises(ValueError, match=r"more than 2,000 files|of 2,001 students"):
            hand_ins.collect(pile, "stragglers")


def test_two_students_of_one_name_are_told_apart_by_their_number(tmp_path):
    pile = tmp_path / "pile.zip"
    with zipfile.ZipFile(pile, "w") as archive:
        for name in ("Bo Li_1235", "Bo Li_1236", "Ann Wu_1237"):
            archive.writestr(f"{name}_assignsubmission_file_/mine.py", name)
            archive.writestr(f"{name}_assignsubmission_onlinetext_/onlinetext.html", "see file")
    found = {one.student: one.source for one in hand_ins.collect(pile, "stragglers")}
    assert found == {"Ann Wu": "Ann Wu_1237", "Bo Li (1235)": "Bo Li_1235", "Bo Li (1236)": "Bo Li_1236"}


def test_who_handed_in_no_python_file_is_listed_with_the_reason_and_a_teachers_own_files_are_not(tmp_path):
    for name in ("ann/mine.py", "bob/mine.ipynb", "bob/data.csv", "dan.ipynb", "wuflo_12_34_mine.txt", "grades.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "cyd").mkdir()
    found = {one.student: one.trouble for one in hand_ins.collect(tmp_path, "stragglers")}
    assert found == {
        "ann": "",
        "bob": "no Python file was handed in, only data.csv, mine.ipynb.",
        "cyd": "no Python file was handed in.",
        "dan": "no Python file was handed in, only dan.ipynb.",
        "wuflo": "no Python file was handed in, only wuflo_12_34_mine.txt.",
    }
    with zipfile.ZipFile(tmp_path / "class.zip", "w") as archive:
        for name in ("class/", "class/cyd/", "class/ann/", "class/ann/mine.py", "class/README.txt"):
            archive.writestr(name, "x" * (not name.endswith("/")))
    assert [one.student for one in hand_ins.collect(tmp_path / "class.zip", "stragglers")] == ["ann", "cyd"]


def test_a_pile_without_solutions_and_a_broken_zip_are_refused_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="has neither Python files nor files saved with My work"):
        hand_ins.collect(tmp_path, "stragglers")
    (tmp_path / "pile.zip").write_bytes(b"PK no")
    with pytest.raises(ValueError, match="is not a readable zip"):
        hand_ins.collect(tmp_path / "pile.zip", "stragglers")


def test_gradescope_reads_a_score_for_every_mark():
    results = json.loads(formats.FORMATS["gradescope"](REPORT))
    assert [(test["score"], test["max_score"], test["status"]) for test in results["tests"]] == [
        (3, 3, "passed"), (0, 2, "failed")
    ]  # fmt: skip
    assert "score" not in results and results["extra_data"]["score_of_100"] == 60


def test_otter_reads_a_test_file_for_every_mark():
    (right, quick) = json.loads(formats.FORMATS["otter"](REPORT))["test_file_results"]
    (case,) = quick["test_case_results"]
    assert right["points"] == 3 and (case["passed"], case["error"]) == (False, "1.7 times")
    assert set(case["test_case"]) == {"name", "code", "points", "hidden", "success_message", "failure_message"}


def test_github_classroom_reads_base64_whose_scores_add_up():
    result = json.load(io.BytesIO(base64.b64decode(formats.FORMATS["classroom"](REPORT))))
    assert (result["status"], result["max_score"], sum(test["score"] for test in result["tests"])) == ("fail", 5, 3)


@pytest.mark.parametrize("name", [one.name for one in lessons.written_chapters() if one.items])
def test_a_quiz_in_gift_has_every_item_with_one_right_answer_and_closed_braces(name):
    import re

    chapter = lessons.chapter(name)
    bare = re.sub(r"\\[\\~=#{}:]", "", gift(chapter, 3))
    questions = bare.strip().split("\n\n")[1:]
    assert len(questions) == len(chapter.items)
    for text, item in zip(questions, chapter.items, strict=True):
        assert text.startswith("::") and text.count("{") == text.count("}") == 1 and text.rstrip().endswith("}")
        assert "####" in text and "{{" not in text
        assert len(re.findall(r"^  =", text, re.MULTILINE)) == bool(item.choices)
        assert len(re.findall(r"^  [=~]", text, re.MULTILINE)) == len(item.choices)
        assert bool(re.search(r"^  #-?[\d.e+-]+:[\d.e+-]+$", text, re.MULTILINE)) is not bool(item.choices)
    assert gift(chapter, 3) == gift(chapter, 3)


def test_courses_name_what_exists():
    sessions, weeks, part = course.courses().values()
    assert (len(sessions), len(weeks), len(part)) == (5, 13, 4)
    for name in course.courses():
        assert course.syllabus(name).count("\n") == len(course.courses()[name]) + 1
    for session in (*sessions, *weeks, *part):
        assert all(lessons.chapter(one) for one in session["read"])
        assert "lab" in session or "also" in session, "a session says what is done in class"
        assert session in weeks or "45 minutes" in session["also"], "a lab fills half of 90 minutes"
        assert all(lessons.chapter(session[kind]).has_text for kind in ("lab", "exercise") if kind in session)


def test_every_chapter_is_read_in_some_course():
    read = {name for sessions in course.courses().values() for session in sessions for name in session["read"]}
    assert set(lessons.CHAPTERS) - read == set()


def test_every_command_that_the_hub_names_exists():
    from lessons.cli.main import main

    sections = {one.title: one.text for one in hub.sections()}
    for line in sections["Commands"].splitlines():
        if line.startswith("lockstep "):
            command, *words = line.removeprefix("lockstep book ").removeprefix("lockstep ").partition("#")[0].split()
            options = {name for option in main.commands[command].params for name in option.opts}
            assert {word for word in words if word.startswith("--")} <= options
    assert {"Rubric", "Decision log", "Frequent questions", "Hosting a class"} <= set(sections)


def test_a_lab_sheet_gives_a_rate_in_as_many_digits_as_the_workbench():
    expected = sheet.sheet(lessons.chapter("stragglers"))
    (rates,) = re.findall(r"samples per second: jitter.+?\n\n", expected, re.DOTALL)
    numbers = [int(one.replace(",", "")) for one in re.findall(r"\d{1,3}(?:,\d{3})+", rates)]
    assert numbers and all(float(f"{number:.3g}") == number for number in numbers)
