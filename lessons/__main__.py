"""The figures of the textbook from the command line.

python -m lessons list              every figure, by chapter, with its question
python -m lessons show warm_up      run its experiments, print the rows and what they show
"""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.table import Table

import lessons
from lessons.figure import run_now


@click.group(help="The figures of the textbook, run again on this machine.")
def main() -> None:
    pass


@main.command("list", help="Every figure, by chapter, with its question.")
def listing() -> None:
    table = Table("chapter", "figure", "question", box=None, pad_edge=False)
    for chapter in lessons.CHAPTERS:
        for number, figure in enumerate(lessons.figures(chapter).values()):
            table.add_row("" if number else chapter, figure.name, figure.question)
    Console(soft_wrap=True).print(table)


@main.command(help="Run a figure's experiments; print its rows and what they show.")
@click.argument("name")
def show(name: str) -> None:
    try:
        figure = lessons.find(name)
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    console = Console()
    console.print(f"[bold]{figure.question}[/]\n{figure.source}\n")
    done = 0

    def run(**values):
        nonlocal done
        done += 1
        status.update(f"run {done}: {values.get('algorithm', 'sync_sgd')}")
        return run_now(**values)

    with console.status("") as status:
        rows = figure.rows(run)
    table = Table(*(str(name) for name in rows[0]), box=None, pad_edge=False)
    for row in rows:
        table.add_row(*map(_spelled, row.values()))
    console.print(table)
    console.print()
    shown = {claim: holds(rows) for claim, holds in figure.claims.items()}
    for claim, holds in shown.items():
        console.print(f"{'[green]yes[/]' if holds else '[red]no [/]'}  {claim}", highlight=False)
    sys.exit(0 if all(shown.values()) else 1)


def _spelled(value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
