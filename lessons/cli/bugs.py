"""`bugs`: show what a mutant does, and ask first for the mechanism, then for the line."""

import json
import secrets
from pathlib import Path

import click
from rich.syntax import Syntax
from rich.table import Table

import lessons
from experiments.cli.console import refuse
from experiments.wording import units
from installation import for_authors
from lessons import harmless, progress
from lessons.bugs import recorded, score
from lessons.bugs.mutant import Mutant, find, mechanisms, mutants
from lessons.cli.console import choices, console, markdown, usage_errors
from lessons.progress import ReaderProgress

POINTS = 9  # columns of a curve in the terminal
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    help="Find the bug in an algorithm. Without a name, list the mutants; with one, see what it does, and name what is "
    "wrong."
)
@click.argument("name", required=False)
@click.option("--seed", type=click.IntRange(0), help="seed of the order of choices; random by default")
@click.option("--save", type=FILE, help="add your answers to this file, to hand in")
@click.option("--answers", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="grade a file of answers, from here or from the textbook's My work page")  # fmt: skip
@click.option(
    "--json", "to", type=FILE, help="with --answers: write the graded answers to this file instead of printing them"
)
@click.option("--record", is_flag=True, help="for authors: run all mutants and write the golden file")
def bugs(
    name: str | None, seed: int | None, save: Path | None, answers: Path | None, to: Path | None, record: bool
) -> None:
    with usage_errors():
        if not answers:
            refuse("goes with --answers FILE; add --answers, or remove this option.", "to")
        if not name:
            refuse("applies to a single bug; give its NAME, or remove the option.", "save", "seed")
        if answers and name:
            raise ValueError(f"--answers grades all answers in a file; remove {name}.")
        if record:
            for_authors()
            recorded.write()
        elif answers:
            _grade(answers, to)
        elif name:
            _ask(find(name), secrets.randbelow(10**6) if seed is None else seed, save)
        else:
            _list()


def _list() -> None:
    table = Table("bug", "chapter", "difficulty", box=None, pad_edge=False)
    for one in mutants():
        table.add_row(one.name, str(lessons.chapter(one.chapter).number), str(one.difficulty))
    console.print(table)
    console.print(
        "\nEach is the algorithm of this name with one mistake:\nlockstep book bugs NAME",
        style="dim",
        highlight=False,
    )


def _ask(mutant: Mutant, seed: int, save: Path | None) -> None:
    _show(mutant)
    said = _mechanism(mutant, seed)
    console.print("\n[bold]Which line?[/]  [dim]If the mistake is a missing line, give a line next to the gap.[/]")
    console.print(
        Syntax("\n".join(mutant.listing), "python", line_numbers=True, word_wrap=True, background_color="default")
    )
    line = click.prompt("? line", type=click.IntRange(1, len(mutant.listing)))
    lines = " or ".join(map(str, mutant.lines))
    console.print("[green]right[/]" if line in mutant.lines else f"[red]no[/], line {lines}", highlight=False)
    console.print(markdown(mutant.why))
    given = {"mechanism": said, "line": line}
    console.print(f"{score.points(mutant, given)} of {score.MOST} points.", highlight=False)
    if save:
        known = progress.read(save.read_bytes()) if save.is_file() else ReaderProgress(reader=save.stem)
        for asked, guess in given.items():
            known = known.with_answer(score.answer(mutant, asked, guess))
        save.write_text(known.text() + "\n", "utf-8")


def _mechanism(mutant: Mutant, seed: int) -> str:
    """Ask what is wrong, show the right answer, and return the key of the mechanism that the reader chose."""
    offered = mutant.choices(seed)
    console.print("\n[bold]What is wrong?[/]")
    console.print(choices(one.says for one in offered))
    letters = "abcdefgh"[: len(offered)]
    said = offered[letters.index(click.prompt("?", type=click.Choice(letters), show_choices=False))]
    if said.key == mutant.mechanism:
        console.print("[green]right[/]")
    else:
        console.print("[red]no[/]")
        right = mechanisms()[mutant.mechanism]
        console.print(f"{said.sign}\nIt is this: {right.says}", highlight=False, markup=False)
    return said.key


def _show(mutant: Mutant) -> None:
    pair = recorded.read()[mutant.name]
    settings = ", ".join(f"{name} {value}" for name, value in mutant.experiment.items() if name != "algorithm")
    console.print(f"[bold]{mutant.experiment['algorithm']}[/] with {settings}", highlight=False)
    console.print("The same experiment twice: with the correct algorithm, and with one mistake in its code.\n")
    table = Table("", *recorded.SIDES, box=None, pad_edge=False)
    for row in pair.table:
        table.add_row(*row)
    console.print(table)
    for curve, sides in pair.curves.items():
        points = dict(map(tuple, sides["healthy"])), dict(map(tuple, sides["mutant"]))
        steps = sorted(points[0].keys() & points[1].keys()) or sorted(points[0])
        few = sorted({steps[round(part * (len(steps) - 1) / (POINTS - 1))] for part in range(POINTS)})
        table = Table("step", *(f"{step:g}" for step in few), box=None, pad_edge=False)
        for side, values in zip(recorded.SIDES, points, strict=True):
            table.add_row(side, *(units.number(values[step]) if step in values else "" for step in few))
        console.print(f"\n{curve}", highlight=False)
        console.print(table)
    console.print(f"\n[dim]Look at: {mutant.look} The textbook's Find the bug page has both timelines.[/]",
                  highlight=False)  # fmt: skip


def _grade(path: Path, to: Path | None) -> None:
    graded = json.dumps(score.grade(progress.read(path.read_bytes())), indent=1, ensure_ascii=False)
    text = harmless.visible(graded) + "\n"
    if to:
        to.write_text(text, "utf-8")
    else:
        click.echo(text, nl=False)
