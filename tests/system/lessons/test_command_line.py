"""The textbook's command line: every command works, and a mistake is one sentence."""

import json
import re

import pytest
from click.testing import CliRunner

import lessons
from lessons import fresh, markup, quiz, survey
from lessons.chapters import Chapter
from lessons.cli import tex
from lessons.cli.main import main
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
    (folder / "text.md").write_text("# Tiny\n\n{{ predict half }}\n{{ collectives.what_nccl_expects }}\nThe end.\n")
    (folder / "quiz.toml").write_text(
        '[[item]]\nname = "half"\nask = "Half of {n}?"\ndraw = { n = [4] }\n'
        'answer = "half"\nwhy = "It is {answer:.0f}."\n'
    )
    (folder / "exercise.py").write_text(f'"""Double."""\n{SOLUTION}')
    chapter = Chapter(folder)
    monkeypatch.setattr(lessons, "chapter", lambda name: chapter)
    monkeypatch.setattr(lessons, "CHAPTERS", ("pipelines", "collectives"))
    monkeypatch.setattr(quiz.Item, "compute_each", lambda item, name, drawn: [drawn["n"] / 2])
    return chapter


def test_help_has_a_short_name_too_as_that_of_the_other_commands(command):
    assert CliRunner().invoke(main.commands["survey"], ["-h"]).exit_code == 0, "also called by itself"
    for words in ((), *((name,) for name in main.commands)):
        done = command(*words, "-h")
        assert done.exit_code == 0 and done.output == command(*words, "--help").output, words


def test_chapters_are_listed_in_order_in_80_columns(command):
    done = command("list", env={"COLUMNS": "80"})
    assert done.exit_code == 0 and all(len(line) <= 80 for line in done.output.splitlines())
    lines = " ".join(done.output.split())
    for one in map(lessons.chapter, lessons.CHAPTERS):
        deeper = f" {one.minutes_folded} deeper" if one.minutes_folded else ""
        assert f"{one.number} {one.name} " in lines and f" {one.minutes}{deeper} " in lines
    assert [lines.count(title) for title in lessons.PARTS.values()] == [1] * len(lessons.PARTS)
    every = command("list", "--figures").output
    assert "more_machines" in every and "What keeps neighbours that exchange gradients together?" in every


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("survey", "--workers", "8"), "add --costs"),
        (("survey", "--family", "averaging"), "add --costs"),
        (("check", "sgd", "--json", "report.json"), "--json applies to the report on a solution"),
        (("check", "sgd", "--seed", "3"), "--seed applies to the report on a solution"),
        (("check", "sgd", "--gradescope", "results.json"), "--gradescope applies to the report on a solution"),
        (
            ("check", "sgd", __file__, "--hint", "1", "--json", "report.json"),
            "--json applies to a report, but --hint gives none",
        ),
        (("run", "sgd", "--seed", "3"), "--seed is the first seed of --fresh; add --fresh"),
        (
            ("run", "sgd", "--fresh", "1", "--out", "figures"),
            "--out writes the results of the recorded seeds",
        ),
        (("bugs", "easgd", "--answers", __file__), "--answers grades all answers in a file; remove easgd."),
        (("bugs", "--json", "graded.json"), "--json goes with --answers FILE"),
        (("bugs", "--save", "answers.json"), "--save applies to a single bug"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(command, words, told):
    done = command(*words)
    assert done.exit_code == 2 and told in done.output


def test_a_chapter_without_text_is_its_figures_with_their_questions(command, draft):
    done = command("show", draft)
    assert done.exit_code == 0 and f"{lessons.chapter(draft).number}. Sandblaster: one" in done.output
    assert all(name in done.output for name in lessons.figures(draft))
    assert f"{len(lessons.figures(draft))} figures, no text yet" in command("list").output
    assert "How much work is lost if a worker is lost?" in done.output and "has no text yet" in done.output


def test_a_chapter_can_be_read(command):
    done = command("show", "stragglers")
    assert done.exit_code == 0
    assert "def worker(comm, task, s=Settings()):" in done.output and "{{" not in done.output


def test_what_is_folded_is_a_part_with_a_label_set_in(command, tiny):
    (tiny.folder / "text.md").write_text("# Tiny\n\npath\n\n{{ fold Why so }}\ninside\n{{ end fold }}\n\nand on\n")
    done = command("show", "pipelines")
    assert done.exit_code == 0 and "0 minutes, 1 more to go deeper." in done.output
    lines = [line.rstrip() for line in done.output.splitlines() if line.strip()]
    at = lines.index("Deeper: Why so")
    assert lines[at - 1 : at + 3] == ["path", "Deeper: Why so", "    inside", "and on"]
    assert "  0  1 deeper" in re.sub(" +", lambda m: m[0][:2], command("list").output)


def test_formulas_can_be_read_in_a_terminal(command):
    done = command("show", "pipedream").output
    assert "w_s^(k+1)" in done and "η" in done
    assert "η h < 2 sin π/(4 τ + 2) ." in command("show", "pipelined_backprop").output
    assert not re.search(r"\\\\[a-z]+|\\$", done)


def test_a_prediction_shows_its_choices_and_the_command_that_judges_them(command):
    done = " ".join(command("show", "stragglers").output.replace("▌", "").split())
    chapter = lessons.chapter("stragglers")
    predicted = [chapter.item(block.item) for block in chapter.blocks() if isinstance(block, markup.Predict)]
    assert sum(bool(item.choices) for item in predicted) > 0
    assert all(" ".join(choice.says.split()) in done for item in predicted for choice in item.choices)
    assert "To answer: lockstep book quiz stragglers" in done


def test_a_command_that_is_told_runs_as_it_is_copied(command):
    told = command("exercise", "stragglers").output + command("bugs").output
    lines = [line for line in told.splitlines() if re.search(r"--hint|--level 2|bugs NAME", line)]
    assert len(lines) == 3 and all("lockstep book " in line for line in lines)


def test_commands_are_listed_by_what_they_are_for_and_none_is_missing(command):
    told = command("--help").output
    assert told.index("To learn") < told.index("  quiz") < told.index("To teach") < told.index("  golden")
    assert all(f"\n  {name} " in told for name in main.commands)


def test_the_survey_cuts_no_name_of_a_module_in_80_columns(command):
    told = command("survey").output
    assert all(row["module"].partition(".")[2] in told for row in survey.rows())
    words = " ".join(told.split())
    assert all(f"published {one.theirs} here {one.ours()}" in words for one in survey.PUBLISHED)


def test_the_survey_names_the_figures_of_each_method_that_the_page_links(command):
    told, page = " ".join(command("survey").output.split()), survey.markdown()
    for row in survey.rows():
        first, more = survey.first_figures(row)
        if first:
            assert ", ".join(first) in told, row["work"]
            linked = ", ".join([*(f"Figure {number}" for number in first), *([f"+{more}"] if more else [])])
            assert linked in page, row["work"]
    assert " figures " in told


def test_every_formula_of_a_quiz_can_be_read_in_a_terminal():
    for one in lessons.written_chapters():
        for item in one.items:
            drawn, answer = one.golden.answers[item.name][0]
            assert "\\" not in tex.readable(item.explanation(drawn, answer)).replace("\\_", "_"), item.name


def test_a_figure_is_run_again_and_says_what_it_shows(command):
    done = command("show", "pipelines", "cut_in_stages")
    assert done.exit_code == 0 and "yes  eight machines train no faster than one" in done.output


def test_a_chapter_is_run_and_leaves_files(command, tiny, tmp_path):
    done = command("run", "tiny", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out/collectives.what_nccl_expects.csv").read_text().startswith("nodes,")
    page = (tmp_path / "out/tiny.html").read_text()
    assert "When does NCCL expect trees" in page and 'id="canvas-collectives.what_nccl_expects"' in page


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
    assert "not every seed shows these claims: it is" in command("golden", "tiny").output


def test_a_golden_file_is_written_and_then_read(command, tiny):
    assert "1 figures and 1 quiz items" in command("golden", "tiny").output
    again = Chapter(tiny.folder)
    assert again.golden.answer("half", {"n": 4}) == 2.0
    assert len(again.blocks()) == 4


def test_one_figure_is_recorded_and_the_rest_stays(command, tiny, monkeypatch):
    command("golden", "tiny")
    before, recorded = json.loads((tiny.folder / "golden.json").read_text()), Chapter(tiny.folder)
    monkeypatch.setattr(lessons, "chapter", lambda name: recorded)
    monkeypatch.setattr(quiz.Item, "compute_each", lambda item, name, drawn: [77])
    assert command("golden", "tiny", "--only", "collectives.what_nccl_expects").exit_code == 0
    assert json.loads((tiny.folder / "golden.json").read_text()) == before
    (tiny.folder / "quiz.toml").write_text((tiny.folder / "quiz.toml").read_text().replace("[4]", "[6]"))
    again = Chapter(tiny.folder)
    monkeypatch.setattr(lessons, "chapter", lambda name: again)
    monkeypatch.setattr(lessons, "find", lambda name: pytest.fail(f"{name} was run again"))
    assert command("golden", "tiny", "--only", "half").exit_code == 0
    after = json.loads((tiny.folder / "golden.json").read_text())
    assert after["answers"] == {"half": [[{"n": 6}, 77, [77]]]} and after["figures"] == before["figures"]


@pytest.mark.slow
def test_what_is_missing_is_recorded_and_nothing_else(command, tiny, monkeypatch):
    assert tiny.missing_results == ["collectives.what_nccl_expects", "half"]
    command("golden", "tiny", "--only", "half")
    again = Chapter(tiny.folder)
    assert again.missing_results == ["collectives.what_nccl_expects"] and again.golden.answer("half", {"n": 4}) == 2
    monkeypatch.setattr(lessons, "chapter", lambda name: again)
    monkeypatch.setattr(quiz.Item, "compute_each", lambda *_: pytest.fail("it was asked again"))
    assert command("golden", "tiny", "--missing").exit_code == 0 and Chapter(tiny.folder).missing_results == []


def test_a_draft_is_read_before_anything_is_recorded(command, tiny, monkeypatch):
    monkeypatch.setattr(lessons, "question", lambda name: "How many?")
    (tiny.folder / "text.md").write_text('# Tiny\n\n{{ there.it }}\n\nIt is {{ value("there.it.x") }}.\n')
    assert "there.it is not in the golden file" in " ".join(command("show", "pipelines").output.split())
    done = command("show", "pipelines", "--draft")
    assert done.exit_code == 0 and "It is ?." in done.output and "How many? (not recorded yet)" in done.output


def test_after_a_wrong_choice_the_right_one_is_told(command, tiny, monkeypatch):
    (tiny.folder / "quiz.toml").write_text(
        '[[item]]\nname = "one"\nask = "Which?"\nanswer = "one"\nwhy = "So."\n'
        '[[item.choice]]\nkey = "a"\nsays = "The first."\n'
        '[[item.choice]]\nkey = "b"\nsays = "The second."\nbut = "No, it."\n'
    )
    monkeypatch.setattr(quiz.Item, "compute_each", lambda item, name, drawn: ["a"])
    told = [command("quiz", "tiny", "--seed", "1", input=f"{letter}\n").output for letter in "ab"]
    assert sum("The answer: The first." in one and "No, it." in one for one in told) == 1


def test_a_quiz_is_asked_and_judged(command, tiny):
    done = command("quiz", "tiny", "--seed", "1", input="2.1\n")
    assert done.exit_code == 0 and "Half of 4?" in done.output and "It is 2." in done.output
    assert "1 of 1 right; --seed 1" in done.output
    assert "0 of 1 right" in command("quiz", "tiny", input="3\n").output


def test_a_long_choice_goes_on_below_its_own_beginning_and_its_formula_can_be_read(command, tiny, monkeypatch):
    long = "It passes at $w - n \\\\eta v$, " + "and so on, " * 9 + "to the end."
    (tiny.folder / "quiz.toml").write_text(
        f'[[item]]\nname = "one"\nask = "Which?"\nanswer = "one"\nwhy = "So."\n'
        f'[[item.choice]]\nkey = "a"\nsays = "{long}"\n[[item.choice]]\nkey = "b"\nsays = "No."\nbut = "No, it."\n'
    )
    told = command("quiz", "tiny", input="q\n", env={"COLUMNS": "80"}).output
    first, second = re.search(r"\n  [ab]  (It passes at .*)\n     (\S.*)\n", told).groups()
    assert first.startswith("It passes at w - n η v, and so on,") and second.rstrip().endswith("to the end.")
    assert re.search(r"\n  [ab]  No\.", told)


def test_a_quiz_says_how_to_leave(command, tiny):
    done = command("quiz", "tiny", "--seed", "1", input="half\nq\n")
    assert done.exit_code == 0 and "'half' is not a number; give one such as 1.5, or q to leave." in done.output
    assert "0 of 0 right" in done.output


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


def test_what_was_observed_stays_below_its_mark_in_80_columns(command, tmp_path, monkeypatch):
    def check(solution, seed):
        yield "doubles", False, "a word " * 20 + "and the end"

    monkeypatch.setattr("lessons.stragglers.check.check", check)
    monkeypatch.setattr("lessons.stragglers.check.POINTS", {"doubles": 3})
    (tmp_path / "mine.py").write_text(SOLUTION)
    told = command("check", "stragglers", str(tmp_path / "mine.py"), env={"COLUMNS": "80"}).output
    lines = [line for line in told.splitlines() if "word" in line]
    assert len(lines) > 1 and all(line.startswith(12 * " ") for line in lines)


def test_where_nothing_of_a_solution_ran_no_protection_is_missed(command, tmp_path):
    (tmp_path / "mine.py").write_text("")
    told = command("check", "stragglers", str(tmp_path / "mine.py")).output
    assert "the file is empty" in told and "Sandbox: not started" in told and "Not protected" not in told


def test_a_start_file_gets_no_score_but_is_told_that_nothing_is_handed_in_yet(command, tmp_path):
    (tmp_path / "mine.py").write_text(lessons.chapter("stragglers").exercise)
    done = command("check", "stragglers", str(tmp_path / "mine.py"))
    assert "Nothing is handed in yet" in done.output and "this is the unmodified start file" in done.output
    assert done.exit_code == 1 and "of 100" not in done.output and "seed" not in done.output


def test_a_check_that_fails_by_itself_still_writes_the_report(command, tmp_path, monkeypatch):
    def check(solution, seed):
        with solution.attempt():
            yield "starts", True, "so"
            raise OverflowError("int too large")

    monkeypatch.setattr("lessons.stragglers.check.check", check)
    monkeypatch.setattr("lessons.stragglers.check.POINTS", {"starts": 1, "ends": 3})
    (tmp_path / "mine.py").write_text(SOLUTION)
    done = command("check", "stragglers", str(tmp_path / "mine.py"), "--gradescope", str(tmp_path / "results.json"))
    results = json.loads((tmp_path / "results.json").read_text())
    assert done.exit_code == 1 and [one["score"] for one in results["tests"]] == [1, 0]
    for shown in (" ".join(done.output.split()), results["output"]):
        assert "the grader itself failed" in shown and "int too large; test_command_line.py, line " in shown


def test_points_and_targets_are_shown_without_a_file(command):
    done = command("check", "stragglers")
    assert done.exit_code == 0 and "a crashed worker does not stop it" in done.output and "1.05" in done.output
    assert "Write a server" in command("exercise", "stragglers").output
    assert "this part is yours" in command("exercise", "stragglers", "--level", "3").output


def test_a_target_that_is_to_be_reached_is_not_said_to_be_at_most(command):
    for chapter in ("gossip", "decoupled"):
        told = command("check", chapter).output
        assert ", at least" in " ".join(told.split()) and "at most" not in told


def test_hints_come_one_after_the_other_and_the_report_notes_them(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.py", "anna.py"):
        (tmp_path / name).write_text("def server(comm: pass")
    assert "(1 of 3)" in command("check", "stragglers", "--hint", "5").output
    told = [command("check", "stragglers", "mine.py", "--hint", "4").output for _ in range(4)]
    assert [text.split(" (")[0] for text in told] == ["concept", "principle", "almost the line", "almost the line"]
    assert "# Hints taken: 4.1, 4.2, 4.3\n" in told[-1]
    assert "Hints taken" not in command("check", "stragglers", "anna.py").output
    done = command("check", "stragglers", "mine.py", "--json", "report.json")
    assert "Hints taken: 4.1, 4.2, 4.3." in done.output and done.output.count("Not reached") == 1
    assert json.loads((tmp_path / "report.json").read_text())["hints"] == ["4.1", "4.2", "4.3"]


def test_every_command_is_named_in_a_whole_sentence(command):
    told = command("--help", terminal_width=80).output.partition("To learn:")[2].splitlines()
    told = [line for line in told if line.startswith("  ")]
    assert len(told) == len(main.commands) and all(line.endswith(".") and not line.endswith("..") for line in told)


def test_a_quiz_for_moodle_says_how_near_a_number_must_be(command, tmp_path):
    items = [item for one in lessons.written_chapters() for item in one.items]
    assert max(item.within for item in items if not item.choices) == 0.25
    assert "10 % unless quiz.toml says otherwise, 25 % at most" in " ".join(command("quiz", "--help").output.split())
    near = [item.within for item in lessons.chapter("pipedream").items if not item.choices]
    told = command("quiz", "pipedream", "--gift", str(tmp_path / "quiz.gift")).output
    assert f"accepted within {100 * min(near):g} to {100 * max(near):g} %" in told


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "nosuch"), "`list` lists the chapters"),
        (("show", "colectives"), "there is no chapter 'colectives'; did you mean collectives?"),
        (("show", "collectives.order_of_sum"), "did you mean order_of_sums?"),
        (("show", "collectives", "order_of_sum"), "did you mean order_of_sums?"),
        (("golden", "stragglers", "--only", "nothing"), "has no figure or question 'nothing'"),
        (("run", "nosuch"), "there is no chapter 'nosuch'"),
        (("check", "stragglers", "nowhere.py"), "does not exist"),
        (("check", "stragglers", "--hint", "9"), "there is no hint 9.1"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(command, words, sentence):
    done = command(*words)
    assert done.exit_code == 2 and sentence in " ".join(done.output.split())
    assert "Traceback" not in done.output


def test_a_chapter_that_has_no_quiz_or_exercise_yet_says_so(command, draft):
    for words, what in ((("quiz",), "quiz"), (("exercise",), "exercise"), (("check", __file__), "exercise")):
        done = command(words[0], draft, *words[1:])
        assert done.exit_code == 2 and f"has no {what}" in " ".join(done.output.split())


def test_fresh_seeds_tell_what_breaks_with_its_numbers_and_how_to_try_it_again(command, monkeypatch):
    @figure("Is it even?", source="nobody", claims={"it is even": lambda rows: rows[0]["left"] == 0})
    def even(run):
        return [{"left": run.seed % 2, "steps": run.seed}]

    trial = fresh.Trial("tiny.even", 1, lambda of, on_run: fresh.not_shown(even, of, on_run))
    monkeypatch.setattr(fresh, "trials", lambda name: [trial])
    done = command("run", "tiny", "--fresh", "3")
    first = re.search(r"--fresh 3 --seed (\d+)", done.output)[1]
    assert done.exit_code == 1 and "tiny.even: 1 of 1 break" in done.output
    odd = int(first) + 1 - int(first) % 2
    assert f"seed {odd}: it is even" in done.output and "left" in done.output and "steps" not in done.output
    assert command("run", "tiny", "--fresh", "3", "--seed", first).output == done.output
    good = command("run", "tiny", "--fresh", "1", "--seed", "100")
    assert good.exit_code == 0 and "All hold" in good.output


def test_what_is_to_be_run_is_named_unless_fresh_seeds_try_all(command):
    done = command("run")
    assert done.exit_code == 2 and "Give its name" in done.output
    done = command("run", "sgd", "sdg")
    assert done.exit_code == 2 and "did you mean sgd?" in done.output
