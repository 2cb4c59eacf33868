"""`exercise`: print the task of an exercise, or the start file of a level."""

import click
from rich.table import Table

import lessons
from lessons.cli.console import console, markdown, usage_errors
from lessons.grading import levels
from lessons.grading.sheet import STEPS, Sheet


@click.command(help="Print the task of the chapter's exercise. With --level: its start file.")
@click.argument("name")
@click.option("--level", type=click.IntRange(0, len(levels.LEVELS)), help="how much is left to write: "
              "0 improve exercise.py, which works, but not well enough; 1 read and predict; 2 a line; 3 a role; "
              "4 everything")  # fmt: skip
def exercise(name: str, level: int | None) -> None:
    with usage_errors():
        sheet = Sheet(lessons.chapter(name))
        if level is not None:
            click.echo(levels.template(sheet, level) if level else sheet.source, nl=False)
            return
    console.print(markdown(f"# {sheet.title}\n{sheet.task_alone}"))
    show(sheet)


def show(sheet: Sheet) -> None:
    """Print what a solution must achieve, and how to get help.

    A solution is judged by criteria, which are worth points, and by targets.
    """
    marks = Table("", "points", "mark", box=None, pad_edge=False)
    for number, (mark, points) in enumerate(sheet.points.items(), 1):
        marks.add_row(str(number), str(points), mark)
    targets = Table("target", "limit", "counted in", box=None, pad_edge=False)
    for target in sheet.targets:
        targets.add_row(target.name, target.most, target.of)
    console.print(marks)
    console.print()
    console.print(targets)
    each = "0 exercise.py, " + ", ".join(f"{number} {what.lower()}" for number, what in levels.LEVELS.items())
    console.print(
        f"\nThe next hint on mark 2, of {len(STEPS)} in all:\nlockstep book check {sheet.name} FILE --hint 2\n"
        f"The start file of level {each}:\nlockstep book exercise {sheet.name} --level 2",
        highlight=False, style="dim",
    )  # fmt: skip
