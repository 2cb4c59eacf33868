"""`lockstep book progress`: a table of what a class has handed in."""

import csv
import json

import pytest
from click.testing import CliRunner

import lessons
from lessons.cli.main import main

CHAPTER = lessons.chapter("stragglers")


@pytest.fixture
def hand_in(tmp_path):
    """hand_in(file, name, (item, right, sure), ...) is a file with these answers, each a day after the one before."""

    def written(file, name, *answers):
        found = []
        for day, (asked, right, sure) in enumerate(answers, 1):
            item = CHAPTER.item(asked)
            drawn = item.all_parameters()[0]
            truth = CHAPTER.golden.answer(asked, drawn)
            wrong = next((choice.key for choice in item.choices if choice.key != truth), -1)
            found.append({
                "chapter": "stragglers", "item": asked, "parameters": drawn, "guess": truth if right else wrong,
                "sure": sure, "right": True, "place": "quiz", "at": f"2026-03-{day:02}T08:00:00Z",
            })  # fmt: skip
        path = tmp_path / file
        path.write_text(json.dumps({"lockstep": 1, "reader": name, "answers": found}), "utf-8")
        return str(path)

    return written


def progress(*words):
    done = CliRunner().invoke(main, ["progress", *map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_a_class_is_a_row_for_each_student_judged_by_first_answers(hand_in, tmp_path):
    ada = hand_in("1.json", "Ada", ("elsewhere", False, 2), ("elsewhere", True, 2), ("dearest", True, 0))
    other = hand_in("noether.json", "", ("speed_up", False, 2), ("elsewhere", False, 1), ("dearest", False, 2))
    nothing = hand_in("3.json", "[red]Jürgen[/x]; Jr.")
    done = progress(ada, other, nothing, "--csv", tmp_path / "class.csv")
    assert done.exit_code == 0
    rows = list(csv.reader((tmp_path / "class.csv").read_text("utf-8").splitlines()))
    assert rows == [
        ["student", "answered", "right first time", "sure and wrong"],
        ["Ada", "2", "1", "1"],
        ["noether", "3", "0", "2"],
        ["[red]Jürgen[/x]; Jr.", "0", "0", "0"],
    ]
    lines = [" ".join(line.split()) for line in done.output.splitlines()]
    assert lines == [" ".join(row) for row in rows]


def test_a_bad_file_is_named_and_the_others_are_read(hand_in, tmp_path):
    good, bad, picture = hand_in("good.json", "Ada", ("elsewhere", True, 1)), tmp_path / "b.json", tmp_path / "c.png"
    bad.write_text('{"lockstep": 2}')
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    done = progress(bad, good, picture, "--csv", tmp_path / "class.csv")
    told = done.output
    assert done.exit_code == 1 and "Ada" in told
    assert "b.json: the file has version 2" in told and "c.png: the file is not JSON" in told
    assert len((tmp_path / "class.csv").read_text().splitlines()) == 2


def test_a_file_or_a_folder_that_is_not_there_is_a_mistake_of_the_command(hand_in, tmp_path):
    for words in ((tmp_path / "gone.json",), (hand_in("a.json", "Ada"), "--csv", tmp_path / "gone" / "class.csv")):
        done = progress(*words)
        assert done.exit_code == 2 and "gone" in done.output
