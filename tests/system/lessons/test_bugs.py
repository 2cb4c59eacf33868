"""Find the bug: every mutant is one text away from its module, and shows under any seed what it is said to show."""

import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

import algorithms
import lessons
from lessons import progress
from lessons.bugs import recorded, score
from lessons.bugs.mutant import find, mechanisms, mutants
from lessons.cli.main import main
from lessons.progress import ReaderProgress
from tests.tiers import slow_except

NAMES = [one.name for one in mutants()]


@pytest.fixture
def command():
    return lambda *words, **how: CliRunner().invoke(main, list(words), **how)


def answered(**answers):
    """Progress of a reader: mutant=(mechanism, line)."""
    document = ReaderProgress(reader="Ada")
    for name, (mechanism, line) in answers.items():
        for asked, guess in (("mechanism", mechanism), ("line", line)):
            document = document.with_answer(score.answer(find(name), asked, guess))
    return document


def times(mutant, seen):
    """Return the factor, at least 1, between the two figures; infinite if one is zero or not finite."""
    one, other = (seen.values[side][mutant.shows] for side in recorded.SIDES)
    if not one or not other:
        return 1.0 if one == other else math.inf
    return max(one / other, other / one)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_mutant_differs_from_its_module_under_three_seeds_by_the_stated_factor(name):
    mutant = find(name)
    pairs = [recorded.pair(mutant, seed) for seed in range(3)]
    assert all(times(mutant, pair) >= mutant.factor for pair in pairs)
    golden = recorded.read()[name]
    for side in recorded.SIDES:
        now, then = pairs[0].values[side], golden.values[side]
        assert now.keys() == then.keys()
        for figure in ("seconds", "bytes"):
            assert math.isclose(now[figure], then[figure], rel_tol=0.05)
        assert (now[mutant.shows] or 0) == pytest.approx(then[mutant.shows] or 0, rel=0.3)
        assert [step for step, _ in pairs[0].curves[recorded.LOSS][side]] == [
            step for step, _ in golden.curves[recorded.LOSS][side]
        ]


def test_a_measured_quantity_that_is_no_number_is_not_told_as_zero():
    values = {"healthy": {"staleness factor": 1.5}, "mutant": {"staleness factor": None}}
    assert recorded.Pair(values, {}, {}).table == [("staleness factor", "1.5", "not finite")]


@pytest.mark.parametrize("name", slow_except(5, NAMES))
def test_without_its_mistake_a_mutant_is_the_module_of_the_catalogue_bit_for_bit(name):
    mutant = find(name)
    worker = algorithms.find(mutant.experiment["algorithm"]).worker
    same, healthy = replace(mutant, new=mutant.old).run_mutant(), mutant.healthy()
    assert same.summary["digest"] == healthy.summary["digest"]
    assert same.trace.seconds() == healthy.trace.seconds()
    assert mutant.run_mutant().summary["digest"] != same.summary["digest"] or mutant.shows not in same.summary
    assert algorithms.find(mutant.experiment["algorithm"]).worker is worker


def test_a_module_that_has_changed_under_its_mutant_is_an_error():
    with pytest.raises(ValueError, match="occurs 0 times"):
        replace(find("easgd"), old="kernels.rubber(p)").source  # noqa: B018
    with pytest.raises(ValueError, match="occurs 2 times"):
        replace(find("easgd"), old="p = kernels.keep(kernels.empty_like").source  # noqa: B018


def test_every_chapter_has_a_mutant_with_named_choices_and_lines_that_are_in_the_listing():
    every = mutants()
    assert {one.difficulty for one in every} == {1, 2, 3}
    assert {one.chapter for one in every} == {*lessons.CHAPTERS}
    for one in every:
        keys = [choice.key for choice in one.choices()]
        assert len(keys) == len({*keys}) == 4 and {*keys} <= mechanisms().keys() and one.choices() == one.choices()
        assert 1 <= len(one.lines) <= 3 and all(sum(text in line for line in one.listing) == 1 for text in one.at)
        assert not any("#" in line for line in one.listing)
        assert {"learning_rate", "steps"} <= one.experiment.keys()
    assert {key for one in every for key in (one.mechanism, *one.distractors)} == mechanisms().keys()
    assert recorded.read().keys() == {one.name for one in every}


def test_the_first_answer_to_each_counts_and_what_is_no_answer_does_not():
    easgd, ssp = find("easgd"), find("ssp")
    document = answered(easgd=("one_sided", easgd.lines[0]), ssp=("late_used", ssp.lines[0]))
    later = document.with_answer(score.answer(ssp, "mechanism", "no_wait"))
    strange = later.with_answer(score.answer(find("adam"), "mechanism", "nothing of the kind"))
    graded = score.grade(progress.read(strange.text()))
    assert (graded["points"], graded["of"], graded["score"]) == (3, 2 * len(NAMES), round(300 / 2 / len(NAMES)))
    assert graded["student"] == "Ada" and graded["bugs"]["ssp"]["said"]["mechanism"] == "late_used"
    assert list(graded["bugs"]) == ["easgd", "ssp"]


def test_a_student_finds_a_bug_in_the_terminal_and_hands_it_in(command, tmp_path):
    assert all(name in command("bugs").output for name in NAMES)
    mutant, file = find("easgd"), tmp_path / "ada.json"
    letter = "abcd"[[choice.key for choice in mutant.choices(7)].index(mutant.mechanism)]
    done = command("bugs", "easgd", "--seed", "7", "--save", str(file), input=f"{letter}\n{mutant.lines[0]}\n")
    assert done.exit_code == 0 and "2 of 2 points" in done.output and "held-out loss" in done.output
    wrong = command("bugs", "ssp", "--seed", "7", "--save", str(file), input="a\n1\n")
    assert wrong.exit_code == 0 and "no, line" in wrong.output
    graded = json.loads(command("bugs", "--answers", str(file)).output)
    assert graded["student"] == "ada" and graded["bugs"]["easgd"]["points"] == 2 and len(graded["bugs"]) == 2
    assert command("bugs", "--answers", str(file), "--json", str(tmp_path / "graded.json")).output == ""
    assert json.loads((tmp_path / "graded.json").read_text()) == graded


@pytest.mark.parametrize("name", NAMES)
def test_figures_curves_and_code_are_shown_uncut_in_80_columns(command, name):
    done = command("bugs", name, "--seed", "1", input="a\n1\n", env={"COLUMNS": "80"})
    assert done.exit_code == 0 and "…" not in done.output
    assert all(len(line) <= 80 for line in done.output.splitlines())


def test_what_is_no_mutant_and_no_hand_in_is_told_in_a_sentence(command, tmp_path):
    missing = command("bugs", "nothing")
    assert missing.exit_code == 2 and "there is no mutant 'nothing'; choose one of" in missing.output
    (tmp_path / "x.json").write_text("no json")
    assert "the file is not JSON" in command("bugs", "--answers", str(tmp_path / "x.json")).output
