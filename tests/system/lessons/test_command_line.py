"""The textbook's command line: every command works, and a mistake is one sentence."""

import json

import pytest
from click.testing import CliRunner

import lessons
from lessons import quiz
from lessons.__main__ import main
from lessons.chapters import Chapter
from lessons.figure import figure

SOLUTION = "def double(x):\n    print('hello')\n    return 2 * x\n"


@pytest.fixture
def command():
    return lambda *words, **how: CliRunner().invoke(main, list(words), **how)


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A chapter with one figure, one question and one exercise, none of which takes time."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "text.md").write_text("# Tiny\n\n{{ predict half }}\n{{ stragglers.a_hundred_machines }}\nThe end.\n")
    (folder / "quiz.toml").write_text(
        '[[item]]\nname = "half"\nask = "Half of {n}?"\ndraw = { n = [4] }\n'
        'answer = "half"\nwhy = "It is {answer:.0f}."\n'
    )
    (folder / "exercise.py").write_text(f'"""Double."""\n{SOLUTION}')
    chapter = Chapter(folder)
    monkeypatch.setattr(lessons, "chapter", lambda name: chapter)
    monkeypatch.setattr(lessons, "CHAPTERS", ("stragglers",))
    monkeypatch.setattr(quiz.Item, "compute", lambda item, name, drawn: drawn["n"] / 2)
    return chapter


def test_everything_is_listed(command):
    done = command("list")
    assert done.exit_code == 0 and "more_machines" in done.output
    assert "Synchronous SGD and stragglers" in done.output


def test_a_chapter_can_be_read(command):
    done = command("show", "stragglers")
    assert done.exit_code == 0
    assert "def server(comm, task, s):" in done.output and "{{" not in done.output


def test_formulas_gain_no_punctuation_in_a_terminal(command):
    done = command("show", "pipedream")
    assert "w_s^{(b+1)}" in done.output and "\\eta" in done.output
    assert ";=;" not in done.output and "^{!" not in done.output


def test_a_figure_is_run_again_and_says_what_it_shows(command):
    done = command("show", "a_hundred_machines")
    assert done.exit_code == 0 and "yes  the first backup saves most" in done.output


def test_a_chapter_is_run_and_leaves_files(command, tiny, tmp_path):
    done = command("run", "tiny", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/stragglers.a_hundred_machines.csv").read_text().startswith("backups,")
    assert "What would it save" in (tmp_path / "out/tiny.html").read_text()


@pytest.mark.parametrize("words", [("show", "thirds"), ("run", "tiny"), ("golden", "tiny")])
def test_a_claim_is_tested_on_the_rows_as_measured(command, tiny, monkeypatch, words):
    @figure("What is a third?", source="nobody", claims={"three are one": lambda rows: 3 * rows[0]["third"] == 1})
    def thirds(run):
        """A third has more digits than are kept."""
        return [{"third": 1 / 3}]

    monkeypatch.setattr(lessons, "find", lambda name: thirds)
    done = command(*words)
    assert done.exit_code == 0 and "no " not in done.output, done.output


def test_a_claim_that_one_seed_breaks_is_none(command, tiny, monkeypatch):
    @figure("Is the seed small?", source="nobody", claims={"it is": lambda rows: rows[0]["seed"] < 4})
    def small(run):
        """In the mean it is."""
        return [{"seed": run.seed}]

    monkeypatch.setattr(lessons, "find", lambda name: small)
    done = command("show", "small")
    assert done.exit_code == 1 and "2  (0 to 4)" in done.output and "seeds 0 to 4" in done.output, done.output
    assert "no   it is (4 of 5 seeds)" in done.output
    assert "under every seed: it is" in command("golden", "tiny").output


def test_a_golden_file_is_written_and_then_read(command, tiny):
    assert "1 figures and 1 quiz items" in command("golden", "tiny").output
    again = Chapter(tiny.folder)
    assert again.golden.answer("half", {"n": 4}) == 2.0
    assert len(again.blocks()) == 4


def test_a_quiz_is_asked_and_judged(command, tiny):
    done = command("quiz", "tiny", "--seed", "1", input="2.1\n")
    assert done.exit_code == 0 and "Half of 4?" in done.output and "It is 2." in done.output
    assert "1 of 1 right; --seed 1" in done.output
    assert "0 of 1 right" in command("quiz", "tiny", input="3\n").output


def test_a_solution_is_graded_and_the_report_is_kept(command, tmp_path, monkeypatch):
    def check(solution, seed):
        with solution.attempt() as attempt:
            yield "doubles", attempt.call("double", 21) == 42, "42"
        yield "more", False, "no"

    monkeypatch.setattr("lessons.stragglers.check.check", check)
    monkeypatch.setattr("lessons.stragglers.check.POINTS", {"doubles": 3, "more": 1})
    (tmp_path / "mine.py").write_text(SOLUTION)
    to = tmp_path / "report.json"
    done = command("check", "stragglers", str(tmp_path / "mine.py"), "--json", str(to), "--seed", "5")
    assert done.exit_code == 1 and "75 of 100" in done.output and "hello" in done.output
    report = json.loads(to.read_text())
    assert (report["score"], report["seed"], [mark["earned"] for mark in report["marks"]]) == (75, 5, [3, 0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "nosuch"), "there is no figure 'nosuch'"),
        (("show", "gossip"), "has no text yet"),
        (("run", "nosuch"), "there is no chapter 'nosuch'"),
        (("quiz", "gossip"), "has no quiz"),
        (("check", "gossip", __file__), "has no exercise"),
        (("check", "stragglers", "nowhere.py"), "does not exist"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(command, words, sentence):
    done = command(*words)
    assert done.exit_code == 2 and sentence in " ".join(done.output.split())
    assert "Traceback" not in done.output
