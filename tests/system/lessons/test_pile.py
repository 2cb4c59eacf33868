"""An instructor grades a pile: whatever is in it, everybody gets a row, the same one each time, and only once."""

import csv
import json
import zipfile

import pytest
from click.testing import CliRunner

import lessons
from lessons import progress
from lessons.cli.main import main
from lessons.grading import grader
from lessons.instructor import pile

CHAPTER = lessons.chapter("stragglers")
RIGHT = (CHAPTER.folder / "solution.py").read_text("utf-8")
HOSTILE = {
    "reads_us": "def server(comm, task, s):\n    open('/etc/passwd').read()\n",
    "kills": "import os, signal\ndef server(comm, task, s):\n    os.kill(os.getppid(), signal.SIGKILL)\n",
    "exits": "import os\nos._exit(0)\n",
    "floods": "def server(comm, task, s):\n    while True: print('x' * 10000)\n",
    "hoards": "def server(comm, task, s):\n    return [bytearray(10**8) for _ in range(10**4)]\n",
    "formula": "raise SystemExit('=cmd|calc')\n",
}
BAD = {
    "no_syntax": "def server(:\n",
    "no_function": "x = 1\n",
    "empty": "",
    "wrong": "def server(comm, task, s): return 1\n",
}
ENDLESS = "def server(comm, task, s):\n    while True: pass\n"


def call(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def rows(table):
    with table.open(newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.mark.slow
def test_an_instructor_grades_thirty_files_of_which_some_are_hostile(tmp_path):
    students = {f"right{n}": RIGHT for n in range(8)} | {f"template{n}": CHAPTER.exercise for n in range(8)}
    students |= HOSTILE | BAD | {"endless": ENDLESS, "=sum": RIGHT}
    students |= {f"late{n}": "def server(comm, task, s):\n    raise ValueError('no')\n" for n in range(2)}
    assert len(students) == 30
    with zipfile.ZipFile(tmp_path / "pile.zip", "w") as archive:
        for number, (name, source) in enumerate(students.items()):
            archive.writestr(f"{name.replace('_', '-')}_{number}_assignsubmission_file_/mine.py", source)
    done = call("check", "stragglers", tmp_path / "pile.zip", "--csv", tmp_path / "grades.csv", "--seed", 3)
    assert done.exit_code == 0 and "30 solutions; mean" in done.output, done.output
    graded = rows(tmp_path / "grades.csv")
    assert len(graded) == 30 and list(graded["right0"]) == pile.heads(list(pile.Sheet(CHAPTER).points))
    assert {graded[f"right{n}"]["score"] for n in range(8)} == {"100"} == {graded["'=sum"]["score"]}
    assert {graded[f"template{n}"]["score"] for n in range(8)} == {"0"}
    for name in (*HOSTILE, *BAD, "endless", "late0"):
        row = graded[name.replace("_", "-")]
        assert int(row["score"]) < 50 and row["error"] and not row["error"].startswith("="), row
    assert len({row["seed"] for row in graded.values()}) == 1


@pytest.fixture
def quick(monkeypatch):
    """Reports without processes: how often each hand-in was graded is counted."""
    asked = []

    def reports(chapter, hand_ins, seed):
        for one in hand_ins:
            asked.append(one.student)
            marks = [
                {"name": name, "earned": worth, "observed": "so"} for name, worth in pile.Sheet(CHAPTER).points.items()
            ]
            yield one, {"score": 100 - len(one.source), "marks": marks, "seconds": 1.0, "error": ""}

    monkeypatch.setattr(pile, "_reports", reports)
    return asked


def test_a_pile_goes_on_where_it_stopped_and_grades_what_has_changed(tmp_path, quick):
    folder, table = tmp_path / "pile", tmp_path / "grades.csv"
    folder.mkdir()
    for name in ("ann", "bob", "cyd"):
        (folder / f"{name}.py").write_text("x")
    assert call("check", "stragglers", folder, "--csv", table).exit_code == 0
    before, seed = rows(table), pile.seed_of(table)
    assert quick == ["ann", "bob", "cyd"]
    (folder / "bob.py").write_text("xyz")
    done = call("check", "stragglers", folder, "--csv", table)
    assert quick[3:] == ["bob"] and "3 solutions, 2 as before" in done.output
    after = rows(table)
    assert list(after) == ["ann", "bob", "cyd"] and after["ann"] == before["ann"] and after["bob"]["score"] == "97"
    assert pile.seed_of(table) == seed
    call("check", "stragglers", folder, "--csv", table, "--seed", seed + 1)
    assert quick[4:] == ["ann", "bob", "cyd"]


CLEARS = "\x1b]0;owned\x07\x1b[2J\x9b8m\u202e"


def test_nothing_of_a_hand_in_reaches_the_screen_or_the_table_that_a_terminal_obeys(tmp_path, monkeypatch):
    def reports(chapter, found, seed):
        for one in found:
            yield one, {"error": f"{CLEARS}100 of 100"}

    monkeypatch.setattr(pile, "_reports", reports)
    with zipfile.ZipFile(tmp_path / "pile.zip", "w") as archive:
        archive.writestr(f"{CLEARS} ann/mine.py", "x")
        archive.writestr("a\n=b;=1/mine.py", "x")
    done = call("check", "stragglers", tmp_path / "pile.zip", "--csv", tmp_path / "grades.csv")
    table = (tmp_path / "grades.csv").read_text("utf-8")
    assert done.exit_code == 0 and "\ufffd[2J" in done.output and "\ufffd[2J" in table
    for shown in (done.output, table):
        assert not any(mark in shown for mark in CLEARS.replace("]0;owned", "").replace("[2J", "").replace("8m", ""))
    assert len(table.splitlines()) == 3 and "a =b;'=1" in rows(tmp_path / "grades.csv")


def test_one_solution_cannot_write_over_its_own_report(tmp_path):
    clears = ascii(CLEARS)
    (tmp_path / "mine.py").write_text(f"print({clears})\nraise ValueError({clears} + '100 of 100' + chr(0xD800))\n")
    done = call("check", "stragglers", tmp_path / "mine.py", "--gradescope", tmp_path / "results.json", "--seed", 1)
    written = (tmp_path / "results.json").read_text("utf-8")
    assert done.exit_code == 1 and "\n0 of 100" in done.output and "\ufffd[2J" in written
    for shown in (done.output, written):
        assert not any(mark in shown for mark in "\x1b\x07\x9b\u202e")


def test_students_who_handed_in_the_same_text_are_named_together(tmp_path, quick):
    for name, text in {"ann": "xy", "bob": "x", "cyd": "xy", "dan": "xyz", "eve": "0" * 100, "fay": "0" * 100}.items():
        (tmp_path / f"{name}.py").write_text(text)
    for _ in range(2):  # also when all were graded before
        told = call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv").output
        assert "The same text: ann, cyd.\n" in told
        assert told.count("The same text") == 1, "what earned nothing is no copy"


def of_my_work(path, solution, earned, /, chapter="stragglers", **changed):
    """Write the file that My work gives out after this solution was graded, or one that was changed afterwards."""
    marks = [{"name": "right", "points": 4, "earned": 4, "observed": "so"}]
    report = {"chapter": chapter, "score": earned, "seed": 5, "marks": marks}
    handed = json.loads(progress.EMPTY.with_grade(report, solution).text())
    handed["scores"][chapter] |= changed
    path.write_text(json.dumps(handed))


def test_files_of_my_work_are_graded_again_beside_what_they_claim(tmp_path, quick):
    of_my_work(tmp_path / "ann-lockstep.json", "x" * 10, 90)
    of_my_work(tmp_path / "bob-lockstep.json", "x" * 10, 90, score=100)
    of_my_work(tmp_path / "cyd-lockstep (1).json", "x" * 10, 90, solution="y" * 10)
    of_my_work(tmp_path / "dan-lockstep.json", "x", 99, chapter="pipelines")
    of_my_work(tmp_path / "eve-lockstep.json", "x" * (progress.LONGEST + 1), 40)
    (tmp_path / "flo.py").write_text("x" * 10)
    (tmp_path / "notes.json").write_text("{}")
    done = call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv")
    graded = rows(tmp_path / "grades.csv")
    assert quick == ["ann", "bob", "cyd", "dan", "eve", "flo"]
    assert {name: (row["score"], row["claimed"]) for name, row in graded.items() if name < "d"} == {
        "ann": ("90", "90"), "bob": ("90", "100"), "cyd": ("90", "90, for another text")
    }  # fmt: skip
    assert graded["flo"]["claimed"] == "" and "90  ann\n" in done.output
    assert "bob  claimed 100\n" in done.output and "cyd  claimed 90, for another text\n" in done.output


def test_a_file_of_my_work_without_a_solution_says_why(tmp_path):
    of_my_work(tmp_path / "ann-lockstep.json", "x", 99, chapter="pipelines")
    of_my_work(tmp_path / "bob-lockstep.json", "x" * (progress.LONGEST + 1), 40)
    (tmp_path / "cyd-lockstep.json").write_text("no")
    call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv")
    told = {name: row["error"] for name, row in rows(tmp_path / "grades.csv").items()}
    assert told["ann"] == "the file has no score for stragglers: nothing was graded."
    assert told["bob"] == "the file claims 40 of 100, but holds no solution; ask the student for it."
    assert told["cyd"].startswith("the file is not JSON")


def test_one_file_of_my_work_is_graded_on_the_hidden_cases_that_it_was_graded_on(tmp_path):
    report = grader.grade(CHAPTER, "def server(comm, task, s): return 1", seed=7).plain()
    file = tmp_path / "ann-lockstep.json"
    file.write_text(progress.EMPTY.with_grade(report, "def server(comm, task, s): return 1").text())
    told = call("check", "stragglers", file).output
    assert "(seed 7," in told and "The file claims 0, with seed 7: graded again, it earned the same marks." in told
    file.write_text(file.read_text().replace('"score":0', '"score":100'))
    told = call("check", "stragglers", file, "--seed", 8).output
    assert "0 of 100" in told and "The file claims 100, with seed 7." in " ".join(told.split())


def test_a_pile_is_printed_in_the_order_of_its_students_with_the_first_mark_that_was_lost(tmp_path, monkeypatch):
    def backwards(chapter, hand_ins, seed):
        for one in reversed(hand_ins):
            marks = [{"name": "right", "earned": 0, "observed": "not reached"},
                     {"name": "quick", "earned": 0, "observed": "2 times"}]  # fmt: skip
            yield one, {"marks": marks, "level": 3, "hints": ["2.1"], "error": "no."}

    monkeypatch.setattr(pile, "_reports", backwards)
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.py").write_text("x")
    told = call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv").output
    assert "ann  level 3" in told and told.index("ann") < told.index("quick: 2 times") < told.index("bob")
    row = rows(tmp_path / "grades.csv")["bob"]
    assert (row["level"], row["hints"], row["lost"], row["error"]) == ("3", "2.1", "quick: 2 times", "no.")
    (tmp_path / "bob.py").unlink()
    assert (
        "\n1 solution, 1 as before;" in call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv").output
    )


def test_predictions_earn_nothing_in_a_pile_nor_in_other_graders(tmp_path):
    from lessons.grading import levels

    sheet = pile.Sheet(CHAPTER)
    source = levels.template(sheet, 1)
    for guess in ("20", "0", "282"):
        source = source.replace(": None,", f": {guess},", 1)
    (tmp_path / "ann.py").write_text(source)
    call("check", "stragglers", tmp_path, "--csv", tmp_path / "grades.csv")
    row = rows(tmp_path / "grades.csv")["ann"]
    assert (row["score"], row["level"]) == ("0", "1") and row["error"].startswith("this is level 1")
    call("check", "stragglers", tmp_path / "ann.py", "--gradescope", tmp_path / "results.json")
    tests = json.loads((tmp_path / "results.json").read_text())["tests"]
    assert [(one["score"], one["max_score"]) for one in tests] == [(0, worth) for worth in sheet.points.values()]


def test_what_was_graded_before_an_interruption_stays(tmp_path, quick, monkeypatch):
    folder, table = tmp_path / "pile", tmp_path / "grades.csv"
    folder.mkdir()
    for name in ("ann", "bob", "cyd"):
        (folder / f"{name}.py").write_text("x")
    whole = pile._reports

    def cut_off(*given):
        yield next(iter(whole(*given)))
        raise KeyboardInterrupt

    monkeypatch.setattr(pile, "_reports", cut_off)
    assert call("check", "stragglers", folder, "--csv", table, "--seed", 1).exit_code
    assert list(rows(table)) == ["ann"]
    monkeypatch.setattr(pile, "_reports", whole)
    assert call("check", "stragglers", folder, "--csv", table).exit_code == 0
    assert quick == ["ann", "bob", "cyd"]


def test_a_table_of_another_exercise_is_left_alone(tmp_path, quick):
    (tmp_path / "ann.py").write_text("x")
    table = tmp_path / "grades.csv"
    table.write_text("name,grade\nann,1\n")
    done = call("check", "stragglers", tmp_path, "--csv", table)
    assert done.exit_code == 2 and "belongs to another exercise" in done.output
    assert table.read_text() == "name,grade\nann,1\n"


def test_a_folder_without_a_table_to_write_is_refused(tmp_path):
    done = call("check", "stragglers", tmp_path)
    assert done.exit_code == 2 and "many solutions are graded with --csv FILE" in done.output


def test_one_solution_is_told_to_other_graders(tmp_path):
    (tmp_path / "mine.py").write_text("def server(:\n")
    done = call("check", "stragglers", tmp_path / "mine.py", "--gradescope", tmp_path / "results.json", "--seed", 1)
    results = json.loads((tmp_path / "results.json").read_text())
    assert done.exit_code == 1 and len(results["tests"]) == 5 and results["extra_data"]["seed"] == 1
