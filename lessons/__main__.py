"""The textbook from the command line.

python -m lessons list                          list chapters and figures, with their questions
python -m lessons show stragglers               print a chapter; with the name of a figure, run that figure
python -m lessons run stragglers --out folder   run all figures of a chapter; export rows (CSV) and charts (HTML)
python -m lessons quiz stragglers               predict, then compare with the simulator
python -m lessons check stragglers mine.py      grade a solution of the chapter's exercise
python -m lessons golden stragglers             for authors: record figures and quiz answers in the golden file

Exit codes: 0 success; 1 a claim does not hold, or the solution lost marks; 2 usage error.
"""

from __future__ import annotations

import json
import random
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table

import lessons
from lessons import chapters, golden, markup

console = Console()
SMALL_SPACE = re.compile(r"\\[,;:!]")


@click.group(help="The textbook: its chapters, figures, quizzes and exercises.")
def main() -> None:
    pass


@main.command("list", help="List all chapters, and all figures with their questions.")
def listing() -> None:
    table = Table("chapter", "figure", "question", box=None, pad_edge=False)
    for name in lessons.CHAPTERS:
        for number, figure in enumerate(lessons.figures(name).values()):
            table.add_row("" if number else name, figure.name, figure.question)
    Console(soft_wrap=True).print(table)
    for one in lessons.written():
        console.print(f"\n[bold]{one.name}[/]: {one.title()}", highlight=False)


@main.command(help="Print a chapter; or run one figure, and print its rows and which claims hold.")
@click.argument("name")
@click.option(
    "--language",
    type=click.Choice(list(chapters.LANGUAGES)),
    default="en",
    help="of the text, where there is a translation",
)
def show(name: str, language: str) -> None:
    with _usage_errors():
        one = lessons.chapter(name) if name in lessons.CHAPTERS else None
        if one and one.written:
            for block in one.blocks(language):
                console.print(_terminal(one, block))
            return
        if one:
            raise ValueError(f"chapter {name} has no text yet; its figures are {', '.join(lessons.figures(name))}.")
        figure = lessons.find(name)
    with console.status("") as status:
        recorded = chapters.run_figure(figure.name, figure, lambda count: status.update(f"run {count}"))
    sys.exit(0 if _print(figure, recorded) else 1)


@main.command(
    help="Run all figures of a chapter and print rows and claims; with --out also write CSV files and an HTML page."
)
@click.argument("name")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), help="folder to write to")
def run(name: str, out: Path | None) -> None:
    from experiments.plots.chart import chart, page, write_rows

    with _usage_errors():
        one = lessons.chapter(name)
        names = one.figures or [f"{name}.{figure}" for figure in lessons.figures(name)]
        charts, shown = [], True
        for full in names:
            figure = lessons.find(full)
            with console.status("") as status:
                recorded = chapters.run_figure(full, figure, lambda n, full=full: status.update(f"{full}, run {n}"))
            shown &= _print(figure, recorded)
            charts.append((figure.question, figure.text, chart(recorded.rows, recorded.look, recorded.spread)))
            if out:
                console.print(f"{write_rows(recorded.table(), out / f'{full}.csv')}", style="dim")
        if out:
            (out / f"{name}.html").write_text(page(one.title(), charts), "utf-8")
            console.print(f"{out / f'{name}.html'}", style="dim")
    sys.exit(0 if shown else 1)


@main.command(help="Predict, then compare with the simulator. The same --seed asks with the same numbers.")
@click.argument("name")
@click.option("--seed", type=click.IntRange(0), help="of the numbers in the questions; random by default")
def quiz(name: str, seed: int | None) -> None:
    seed = secrets.randbelow(10**6) if seed is None else seed
    with _usage_errors():
        one = lessons.chapter(name)
        if not one.items:
            raise ValueError(f"chapter {name} has no quiz.")
        right = 0
        for item in one.items:
            parameters = item.parameters(seed)
            console.print(_markdown(item.question(parameters)))
            order = random.Random(seed).sample(item.choices, len(item.choices))
            for letter, choice in zip("abcdefgh", order, strict=False):
                console.print(f"  {letter}  {choice.says}", highlight=False)
            if order:
                letter = click.prompt("?", type=click.Choice("abcdefgh"[: len(order)]), show_choices=False)
                guess = order["abcdefgh".index(letter)].key
            else:
                guess = click.prompt(f"? ({item.unit})" if item.unit else "?", type=float)
            with console.status("simulating"):
                answer = item.compute(name, parameters)
            good = item.right(guess, answer)
            right += good
            console.print("[green]right[/]" if good else "[red]no[/]", highlight=False)
            if item.choices and not good:
                console.print(_markdown(item.choice(guess).but))
            console.print(_markdown(item.explanation(parameters, answer)))
            console.print()
    console.print(f"{right} of {len(one.items)} right; --seed {seed} asks the same again.", highlight=False)


@main.command(help="Grade a solution of the chapter's exercise.")
@click.argument("name")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--json", "to", type=click.Path(dir_okay=False, path_type=Path), help="write the report to this file, as JSON"
)
@click.option("--seed", type=click.IntRange(0), help="of the hidden cases; random by default")
def check(name: str, file: Path, to: Path | None, seed: int | None) -> None:
    from lessons.grading import grader, sandbox

    with _usage_errors(), console.status("grading"):
        report = grader.grade(lessons.chapter(name), file.read_text("utf-8", "replace"), seed, file.name)
    for mark in report.marks:
        sign = "[green]yes[/]" if mark.earned else "[red]no [/]"
        console.print(f"{sign}  {mark.earned:>2}/{mark.points:<2}  {mark.name}", highlight=False)
        console.print(f"            {mark.observed}", style="dim", highlight=False, markup=False)
    if report.error:
        console.print(f"\nGrading ended early: {report.error}", highlight=False, markup=False)
    if report.printed:
        console.print(f"\nOutput of the solution:\n{report.printed}", highlight=False, markup=False)
    console.print(f"\n[bold]{report.score} of 100[/]   (seed {report.seed}, {report.seconds:.1f} s)", highlight=False)
    held = ", ".join(f"{part} ({by})" for part, by in report.sandbox.items()) or "not started"
    console.print(f"Sandbox: {held}", style="dim", highlight=False)
    if missing := [part for part in sandbox.ALL if part not in report.sandbox]:
        console.print(f"Not protected on this system: {', '.join(missing)}.", style="dim")
    if to:
        to.write_text(json.dumps(report.plain(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    sys.exit(0 if report.score == 100 else 1)


@main.command("golden", help="For authors: run all figures and quiz items of a chapter and write its golden file.")
@click.argument("name")
def write_golden(name: str) -> None:
    with _usage_errors():
        one = lessons.chapter(name)
        with console.status("") as status:
            new = one.recompute(status.update)
        for full, recorded in new.figures.items():
            if missed := [claim for claim in recorded.claims if not recorded.shows(claim)]:
                raise ValueError(f"{full} does not show what it claims under every seed: {'; '.join(missed)}.")
            for change in golden.differences(was.rows, recorded.rows) if (was := one.golden.figures.get(full)) else ():
                console.print(f"{full}: {change}", highlight=False, markup=False)
        golden.write(new, one.folder / "golden.json")
    console.print(f"{len(new.figures)} figures and {len(new.answers)} quiz items written.", highlight=False)


def _print(figure, recorded: golden.RecordedFigure) -> bool:
    """Print rows, with the range over seeds, and claims; return whether all claims hold."""
    console.print(f"[bold]{figure.question}[/]\n{figure.source}\n", highlight=False)
    table = Table(*recorded.rows[0], box=None, pad_edge=False)
    for row, limits in zip(recorded.rows, recorded.spread, strict=True):
        table.add_row(*(_cell(value, limits.get(name)) for name, value in row.items()))
    console.print(table)
    console.print(f"\n{recorded.said_of_seeds()}\n", style="dim", highlight=False)
    for claim, seeds in recorded.claims.items():
        sign = "[green]yes[/]" if recorded.shows(claim) else "[red]no [/]"
        often = "" if seeds in (0, len(recorded.seeds)) else f" ({seeds} of {len(recorded.seeds)} seeds)"
        console.print(f"{sign}  {claim}{often}", highlight=False)
    console.print()
    return all(map(recorded.shows, recorded.claims))


def _cell(value, limits) -> str:
    """Return a value as text, with its lowest and highest where seeds differ."""
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{shown}  ({limits[0]:.3g} to {limits[1]:.3g})" if limits else shown


def _terminal(one: chapters.Chapter, block: markup.Block):
    """Return a block of a text in a form that the terminal can show."""
    match block:
        case markup.Text(markdown):
            return _markdown(markdown)
        case markup.Code(_, path, line, source):
            return Markdown(f"*{path}, line {line}*\n```python\n{source}\n```")
        case markup.LiveFigure(name):
            return Markdown(f"> **{one.golden.figure(name).question}** `python -m lessons show {name}`")
        case markup.Predict(item):
            return _markdown(f"> Predict: {one.item(item).question(one.item(item).parameters(0))}")


def _markdown(text: str) -> Markdown:
    """Return Markdown without TeX's small spaces, which a terminal would show as punctuation (`\\;` as `;`)."""
    return Markdown(SMALL_SPACE.sub(" ", text))


@contextmanager
def _usage_errors() -> Iterator[None]:
    """Report a ValueError as a usage error, without a traceback."""
    try:
        yield
    except ValueError as error:
        raise click.UsageError(str(error)) from None


if __name__ == "__main__":
    main()
