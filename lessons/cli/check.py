"""`check`: grade a solution to an exercise, or many at once."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

import lessons
from experiments.cli.console import refuse
from lessons.cli.console import console, usage_errors

if TYPE_CHECKING:
    from lessons.grading.grader import GradingReport
    from lessons.instructor.hand_ins import HandIn

WRITTEN = click.Path(dir_okay=False, path_type=Path)


@click.command(
    help="Grade a solution to an exercise. With --csv, grade many at once; without a file, list the criteria and "
    "their points."
)
@click.argument("name")
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--csv", "table", type=WRITTEN, help="grade many: one row per student; earlier rows are kept")
@click.option("--json", "plain", type=WRITTEN, help="write the report to this file, as JSON")
@click.option("--gradescope", type=WRITTEN, help="write Gradescope's results.json")
@click.option("--otter", type=WRITTEN, help="write the JSON that Otter-Grader reads")
@click.option("--classroom", type=WRITTEN, help="write the result for GitHub Classroom's reporter, in base64")
@click.option(
    "--seed", type=click.IntRange(0), help="seed of the hidden cases; default: random, or the seed of the CSV"
)
@click.option(
    "--hint",
    type=click.IntRange(1),
    help="print the next hint on the criterion with this number; with FILE, its report records the hint",
)
def check(
    name: str,
    file: Path | None,
    table: Path | None,
    plain: Path | None,
    seed: int | None,
    hint: int | None,
    **others: Path | None,
) -> None:
    written = {kind: to for kind, to in others.items() if to}
    if table or (file and (file.is_dir() or file.suffix == ".zip")):
        with usage_errors():
            if not (table and file) or plain or written or hint:
                raise ValueError(
                    "many solutions are graded with --csv FILE; hints and other formats are for one solution only."
                )
            _pile(lessons.chapter(name), file, table, seed)
        return
    from lessons.cli import exercise
    from lessons.grading import grader, hints
    from lessons.grading.sheet import STEPS, Sheet
    from lessons.instructor import hand_ins

    with usage_errors():
        sheet = Sheet(lessons.chapter(name))
        if hint:
            refuse("applies to a report, but --hint gives none; remove one of them.", "plain", "seed", *others)
            step, text = hints.take(sheet, hint, file)
            console.print(f"[bold]{STEPS[step - 1]}[/] ({step} of {len(STEPS)}): {escape(text)}", highlight=False)
            line = hints.LINE.format(", ".join(hints.hints_taken(sheet, file)))
            console.print(f"To record this in the file you hand in: [bold]{line}[/]", style="dim", highlight=False)
            return
        if not file:
            refuse(
                "applies to the report on a solution; give its FILE, or remove the option.", "plain", "seed", *others
            )
            exercise.show(sheet)
            return
        source, taken, claim = file.read_text("utf-8", "replace"), hints.hints_taken(sheet, file), None
        if hand_ins.of_work(file):
            handed = hand_ins.from_work(file.stem, file.name, source.encode(), name)
            if handed.trouble:
                raise ValueError(f"{handed.file}: {handed.trouble}")
            source, claim = handed.source, handed
            seed = handed.claim.seed if seed is None else seed
        with console.status("grading"):
            report = grader.grade(lessons.chapter(name), source, seed, file.name, taken, practice=not written)
    _print(report, claim, source)
    if plain:
        plain.write_text(json.dumps(report.plain(), indent=1, ensure_ascii=False) + "\n", "utf-8")
    if written:
        from lessons.instructor.formats import FORMATS

        for kind, to in written.items():
            to.write_text(FORMATS[kind](report), "utf-8")
    sys.exit(0 if report.score == 100 else 1)


def _print(report: GradingReport, claim: HandIn | None, source: str) -> None:
    """Print a report. If `claim` is given, also print the score that a My work file states for `source`."""
    from lessons import progress
    from lessons.grading import levels, sandbox

    if report.untouched:
        console.print(f"Nothing is handed in yet: {report.error}", highlight=False, markup=False)
        return
    for mark in report.judged_marks:
        sign = "[green]yes[/]" if mark.earned else "[red]no [/]"
        console.print(f"{sign}  {mark.earned:>2}/{mark.points:<2}  {mark.name}", highlight=False)
        console.print(Padding(Text(mark.observed, style="dim"), (0, 0, 0, 12), expand=False))
    if missing := [mark.name for mark in report.marks if mark not in report.judged_marks]:
        console.print(f"\nNot reached: {'; '.join(missing)}.", highlight=False, markup=False)
    if report.level:
        console.print(f"Level {report.level} of {len(levels.LEVELS)}.", highlight=False)
    if report.hints:
        console.print(f"Hints taken: {', '.join(report.hints)}.", highlight=False, markup=False)
    if report.error:
        console.print(f"\nGrading ended early: {report.error}", highlight=False, markup=False)
    if report.printed:
        console.print(f"\nOutput of the solution:\n{report.printed}", highlight=False, markup=False)
    console.print(f"\n[bold]{report.score} of 100[/]   (seed {report.seed}, {report.seconds:.1f} s)", highlight=False)
    if claim:
        again = claim.claim.digests == (progress.digest(source), progress.digest(progress.marks(report.plain())))
        same = ": graded again, it earned the same marks" if again else ""
        console.print(f"The file claims {claim.claim_in_words}, with seed {claim.claim.seed}{same}.", highlight=False)
    held = ", ".join(f"{part} ({by})" for part, by in report.sandbox.items()) or "not started"
    console.print(f"Sandbox: {held}", style="dim", highlight=False)
    missing = [part for part in sandbox.ALL if part not in report.sandbox]
    if report.sandbox and missing:
        console.print(f"Not protected on this system: {', '.join(missing)}.", style="dim")


def _pile(chapter, place: Path, table: Path, seed: int | None) -> None:
    """Grade all hand-ins in `place`, write the results to `table`, and print a line for each. Low scores do not make
    the command fail.
    """
    from lessons.grading.seeds import grading_seed
    from lessons.instructor import hand_ins, pile

    if not chapter.exercise:
        raise ValueError(f"chapter {chapter.name} has no exercise.")
    found = hand_ins.collect(place, chapter.name)
    if seed is None:
        seed = pile.seed_of(table)
    seed = grading_seed() if seed is None else seed
    done = []

    with console.status("grading") as status:

        def told(row: dict) -> None:
            done.append(row)
            status.update(f"grading: {len(done)} done, the last one {escape(row['student'])}")

        rows = pile.grade(chapter, found, table, seed, told)
    for row in rows:
        level = f"  [dim]level {row['level']}[/]" if row["level"] else ""
        claim = "" if row["claimed"] in ("", str(row["score"])) else f"  [red]claimed {row['claimed']}[/]"
        console.print(f"{row['score']:>3}  {escape(row['student'])}{level}{claim}", highlight=False)
        for said in filter(None, (row["lost"], row["error"])):
            console.print(Padding(Text(said, style="dim"), (0, 0, 0, 5), expand=False))
    for students in pile.alike(rows):
        console.print(f"\nThe same text: {', '.join(students)}.", highlight=False, markup=False)
    scores = [int(row["score"]) for row in rows]
    count = f"{len(rows)} solution{'s' * (len(rows) != 1)}"
    kept = f", {len(rows) - len(done)} as before" if len(done) < len(rows) else ""
    console.print(
        f"\n{count}{kept}; mean {sum(scores) / len(scores):.0f} of 100; seed {seed}; written to {table}.",
        highlight=False,
    )
