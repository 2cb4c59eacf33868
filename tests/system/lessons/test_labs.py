"""Lab sheets: what they print is what their links open and what runs give, and the handout gives nothing away."""

import io
import itertools
import re
import shlex
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from rich.console import Console

import lessons
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons import markup
from lessons.cli.console import markdown
from lessons.instructor import hub, sheet
from lessons.instructor.assignment import STOP, assignments
from tests.book import differences_under_one_seed

LABS = [one for one in lessons.written_chapters() if one.lab()]
NAMED = [(chapter, name) for chapter in LABS for name in assignments(chapter.name)]
each = pytest.mark.parametrize("chapter", LABS, ids=lambda one: one.name)
each_assignment = pytest.mark.parametrize(
    ("chapter", "name"), NAMED, ids=[f"{chapter.name}-{name}" for chapter, name in NAMED]
)
LINK = re.compile(r"\]\((\./\?[^)]+)\)")
SETTINGS = re.compile(r"\*(\w+)\* (`[^`]*`(?: or `[^`]*`)*)")


def paragraphs(chapter):
    """(settings as printed, links) of every assignment on the handout."""
    lines = sheet.sheet(chapter).split("\n")
    for number, line in enumerate(lines):
        if line.startswith("*algorithm* `"):
            yield dict(SETTINGS.findall(line)), LINK.findall(lines[number + 2])


@each
def test_every_link_of_a_sheet_opens_with_exactly_the_values_that_are_printed(chapter):
    found = list(paragraphs(chapter))
    assert len(found) == len(assignments(chapter.name))
    for printed, links in found:
        values = {name: re.findall(r"`([^`]*)`", words) for name, words in printed.items()}
        meant = [Experiment.of(dict(zip(values, some, strict=True))) for some in itertools.product(*values.values())]
        assert links
        for link in links:
            assert Experiment.from_query(link) in meant, link
            said, *stops = unquote(parse_qs(urlsplit(link).query).get("stops", [""])[0]).split(STOP)
            assert not said or [one or "none" for one in stops] == values[said]


@each
def test_a_setting_that_is_left_empty_is_said_to_be_none_and_a_large_one_as_it_is_typed(chapter):
    text = sheet.sheet(chapter) + sheet.handout(chapter)
    assert not re.search("[^`]``[^`]", text)
    assert not re.search(r"0{6}\.0", text)


@each_assignment
def test_a_sweep_link_makes_the_runs_of_the_table(chapter, name):
    one = assignments(chapter.name)[name]
    if one.paired:
        assert [Experiment.from_query(one.link(**turned)) for turned in one.stops()] == [
            Experiment.of({**one.settings, **turned}) for turned in one.stops()
        ]
        return
    *outer, axis = one.turn
    for turned in one.stops():
        query = one.sweep(**{place: turned[place] for place in outer})
        said, *stops = unquote(parse_qs(query, keep_blank_values=True)["stops"][0]).split(STOP)
        assert said == axis and len(stops) == len(one.turn[axis])
        base = Experiment.from_query(query)
        stop = stops[one.turn[axis].index(turned[axis])]
        assert base.change(**{axis: stop}) == Experiment.of({**one.settings, **turned})


@each
def test_a_handout_has_no_hints_and_no_results_but_tables_to_fill_in(chapter):
    text, full = sheet.handout(chapter), sheet.sheet(chapter)
    assert "<!--" not in text + full and "{{" not in text + full
    for private in sheet.PRIVATE.findall(chapter.lab()):
        lines = [line for line in private.splitlines() if len(line) > 40 and "{{" not in line]
        assert not any(line in text for line in lines)
    assert "What goes wrong" in full and "What goes wrong" not in text and "Aim" not in text
    turned = {name for one in assignments(chapter.name).values() for name in one.turn}
    expected = {f"{value:.4g}" for figure in sheet.expected_results(chapter).figures.values() for row in figure.rows
                for name, value in row.items() if isinstance(value, float) and name in figure.rows[0]
                and name not in turned}  # fmt: skip
    tables = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    assert "|   |" in tables and not any(re.search(rf"\| {re.escape(one)} ", tables) for one in expected if "." in one)
    assert "Means over seeds" not in text and "Means over seeds" in full


@each
def test_a_handout_is_a_page_of_its_own_that_needs_nothing_else(chapter):
    page = sheet.page(chapter, base="http://class.example/lab/")
    assert page.startswith("<!doctype html>") and "<script" not in page and "$" not in page
    assert "<table>" in page and 'href="http://class.example/lab/?algorithm=' in page
    assert ">http://class.example/lab/</a>" in page and "Name: ____" in page and "________</p>" in page
    assert not re.search(r'(?:src|href)="(?!http://class\.example/lab/|schedules)', page)


@each
def test_a_sheet_speaks_of_ranges_where_there_are_some_and_of_seeds_before_its_first_table(chapter):
    before, _, after = sheet.sheet(chapter).partition(sheet.SEEDS)
    assert "\n| --- " not in before
    for told in re.findall(r"((?:^\|.*\n)+)\n(.*)", after, re.MULTILINE):
        cells, said = told
        assert ("the lowest and the highest" in said) is bool(re.search(r" to |some seeds", cells)), said


@each
def test_a_sheet_in_a_terminal_of_80_columns_is_whole(chapter):
    on = Console(file=io.StringIO(), width=80)
    on.print(markdown(sheet.sheet(chapter)))
    said = set(on.file.getvalue().split())
    cells = [cell for line in sheet.sheet(chapter).split("\n") if line.startswith("| ") for cell in line.split("|")]
    assert {word for cell in cells for word in cell.split() if word[-1:].isdigit()} <= said and "…" not in "".join(said)


@each
def test_a_sheet_is_understood_and_its_table_is_there(chapter):
    assert markup.blocks(sheet.sheet(chapter), chapter.name, chapter.golden)
    known = sheet.expected_results(chapter).figures
    assert list(known) == list(assignments(chapter.name))
    for name, one in assignments(chapter.name).items():
        assert all(map(known[name].shows, known[name].claims)) and list(known[name].claims) == list(one.claims)


def test_the_worked_example_of_the_project_gives_what_it_says():
    (line,) = re.findall(r"^lockstep sweep (.*)$", (hub.HERE / "project.md").read_text("utf-8"), re.M)
    names, *words = shlex.split(line)
    given = {option[2:].replace("-", "_"): value for option, value in zip(words[::2], words[1::2], strict=True)}
    seeds = given.pop("seed").split(",")
    for name in names.split(","):
        done = [run(Experiment.of({**given, "algorithm": name, "seed": seed})).summary for seed in seeds]
        assert all(one["seconds"] < 0.1 for one in done), "every seed reaches the target in time"
        megabytes = sorted(round(one["bytes"] / 1e6, 1) for one in done)
        if name == "sync_sgd":
            assert 14 <= megabytes[0] <= megabytes[-1] <= 16
        else:
            assert megabytes == [1.9] * 3 and {round(1000 * one["seconds"]) for one in done} <= {28, 29}


def test_a_handout_that_quotes_a_result_is_refused(monkeypatch):
    chapter = lessons.chapter("averaging")
    monkeypatch.setattr(chapter, "lab", lambda: 'It is {{ noted("unlike.loss", period=1) | f(".2f") }}.\n')
    with pytest.raises(ValueError, match="gives a result away"):
        sheet.handout(chapter)
    assert sheet.sheet(chapter).startswith("It is 0.")


def test_an_unknown_assignment_is_refused_with_those_that_exist(monkeypatch):
    chapter = lessons.chapter("averaging")
    monkeypatch.setattr(chapter, "lab", lambda: "{{ table nowhere }}\n")
    with pytest.raises(ValueError, match="there is no assignment 'nowhere'; choose one of meet_seldom"):
        sheet.handout(chapter)


@pytest.mark.slow
@pytest.mark.usefixtures("rates_are_stated")
@each_assignment
def test_what_a_sheet_expects_is_what_runs_give(chapter, name):
    one, kept = assignments(chapter.name)[name], sheet.expected_results(chapter).figure(name)
    figure = one.figure(name)
    for claim, holds in figure.claims.items():
        assert not kept.samples or all(holds(kept.under(seed)) for seed in kept.seeds), claim
    assert differences_under_one_seed(kept, figure, chapter.name) == []
