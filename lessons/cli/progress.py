"""`progress`: summarise the answers of a class from the files that students handed in."""

import csv
import sys
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

import lessons
from lessons import harmless, progress, returning
from lessons.cli.console import console

COLUMNS = ("student", "answered", "right first time", "sure and wrong")


@click.command("progress", help="Print a table of handed-in progress, one row per student.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--csv", "to", type=click.Path(dir_okay=False, path_type=Path), help="also write it to this file")
def handed_in(files: tuple[Path, ...], to: Path | None) -> None:
    chapters, rows, unread = lessons.written_chapters(), [], []
    for file in files:
        try:
            one = progress.read(file.read_bytes())
        except ValueError as error:
            unread.append(harmless.line(f"{file}: {error}"))
            continue
        rows.append(
            (harmless.line(one.reader or file.stem), *returning.standing(returning.valid_answers(one, chapters)))
        )
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)
    for line in unread:
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if to:
        try:
            with to.open("w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows([COLUMNS, *((harmless.cell(name), *rest) for name, *rest in rows)])
        except OSError as error:
            raise click.UsageError(f"{to} cannot be written: {error.strerror}; name another file.") from None
    sys.exit(1 if unread else 0)
