"""`inventory`: answer the concept inventory before and after a course, and report a class's results."""

import csv
import secrets
from pathlib import Path

import click
from rich.markup import escape
from rich.table import Table

from lessons import harmless, inventory, inventory_report
from lessons.cli.console import choices, console, markdown, usage_errors
from lessons.inventory import Sitting

WRITTEN = click.Path(dir_okay=False, path_type=Path)
STUDENTS = ("student", "before", "after", "gain")
ITEMS = ("question", "right before", "right after", "discrimination", "misconceptions chosen")


@click.command(
    "inventory", help="Ask questions from every chapter before and after a course. Wrong choices name misconceptions."
)
@click.option("--before", type=WRITTEN, help="ask before the course, and write the answers to this file")
@click.option("--after", type=WRITTEN, help="the same, after the course")
@click.option("--student", help="your name; default: the name of the file")
@click.option("--seed", type=click.IntRange(0), help="seed of the order of questions and choices; random by default")
@click.option("--report", "folder", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="print gains and statistics from the answer files in this folder")  # fmt: skip
@click.option("--csv", "to", type=WRITTEN, help="with --report: also write a row per student to this file, and a row "
              "per question to a file of the same name plus -items")  # fmt: skip
def take(
    before: Path | None, after: Path | None, student: str | None, seed: int | None, folder: Path | None, to: Path | None
) -> None:
    with usage_errors():
        if sum(map(bool, (before, after, folder))) != 1 or (to and not folder):
            raise ValueError("give one of --before FILE, --after FILE and --report FOLDER; --csv goes with --report.")
        if folder:
            _report(folder, to)
            return
        file = before or after
        if file.exists():
            raise ValueError(f"{file} exists; choose another name, so that no answers are lost.")
        _ask(file, "before" if before else "after", student or file.stem, seed)


def _ask(file: Path, when: str, student: str, seed: int | None) -> None:
    """Ask all questions and write the answers to `file`. Right answers are not shown, because the questions come again
    later.
    """
    seed = secrets.randbelow(10**6) if seed is None else seed
    answers = {}
    asked = inventory.shuffle_questions(seed)
    for number, question in enumerate(asked, 1):
        console.print(f"\n[bold]{number} of {len(asked)}[/]", highlight=False)
        console.print(markdown(question.ask))
        options = question.shuffle_choices(seed)
        console.print(choices(option.says for option in options))
        letters = "abcdefgh"[: len(options)]
        letter = click.prompt("? (- if you do not know)", type=click.Choice([*letters, "-"]), show_choices=False)
        if letter != "-":
            answers[question.name] = options[letters.index(letter)].key
    sitting = Sitting(lockstep_inventory=3, student=student, when=when, seed=seed, answers=answers)
    file.write_text(sitting.text(), "utf-8")
    console.print(f"\nThank you. Your answers are in {file}; hand it in.", highlight=False, markup=False)


def _report(folder: Path, to: Path | None) -> None:
    """Print the students' gains, statistics of the questions, and misconceptions.

    If `to` is given, also write the gains and the statistics as CSV.
    """
    sittings, mistakes = inventory_report.read_folder(folder)
    if not sittings:
        raise ValueError(f"{folder} contains no answer files; collect those that `inventory --before FILE` wrote.")
    questions = inventory.questions()
    every = inventory_report.students(sittings, questions)
    people = [(one.name, _plain(one.before), _plain(one.after), _plain(one.gain)) for one in every]
    items = [
        (one.question, _plain(one.before), _plain(one.after), _plain(one.discrimination),
         ", ".join(f"{name} {count}" for name, count in one.chosen.most_common()))
        for one in inventory_report.statistics(sittings, questions)
    ]  # fmt: skip
    _print(STUDENTS, people)
    mean, of_means = inventory_report.mean_gain(every), inventory_report.gain_of_means(every)
    console.print(
        f"Class mean gain: {_plain(mean) or 'none yet'}; gain of the class means: {_plain(of_means) or 'none yet'}\n",
        highlight=False,
    )
    _print(ITEMS, items)
    console.print()
    said = inventory.misconceptions()
    chosen = inventory_report.misconceptions(sittings, questions)
    _print(("misconception", "before", "after", "which says"),
           [(name, str(one), str(other), said[name]) for name, one, other in chosen])  # fmt: skip
    for line in mistakes:
        console.print(line, style="red", highlight=False, markup=False)
    if to:
        for path, rows in ((to, [STUDENTS, *people]), (to.with_stem(f"{to.stem}-items"), [ITEMS, *items])):
            with path.open("w", newline="", encoding="utf-8") as out:
                csv.writer(out).writerows([harmless.cell(name), *rest] for name, *rest in rows)


def _print(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    console.print(table)


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
