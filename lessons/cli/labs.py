"""`lab` and `handout`: print the sheets of a chapter's lab."""

from pathlib import Path

import click

import lessons
from installation import for_authors
from lessons.cli.console import console, markdown, usage_errors

BASE = click.option("--base", help="address of the workbench for links; default: http://localhost:8501/")


def _with_lab(name: str):
    chapter = lessons.chapter(name)
    if not chapter.lab():
        raise ValueError(f"chapter {name} has no lab.")
    return chapter


@click.command(help="Print the lab sheet for instructors. It has hints and expected results.")
@click.argument("name")
@click.option("--record", is_flag=True, help="for authors: first run its assignments and record the expected results")
@BASE
def lab(name: str, record: bool, base: str | None) -> None:
    from lessons import golden
    from lessons.instructor import sheet

    with usage_errors():
        chapter = _with_lab(name)
        if record:
            for_authors()
            with console.status("") as status:
                new = sheet.record(chapter, status.update)
            for one, recorded in new.figures.items():
                if missed := [claim for claim in recorded.claims if not recorded.shows(claim)]:
                    raise ValueError(f"{one}: not every seed shows these claims: {'; '.join(missed)}.")
            golden.write(new, chapter.folder / "lab.json")
        console.print(markdown(sheet.sheet(chapter, base=base or sheet.HERE)))


@click.command(help="Write the handout of a lab for students. It has no hints or results, and prints well.")
@click.argument("name")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="HTML file to write")
@BASE
def handout(name: str, out: Path, base: str | None) -> None:
    from lessons.instructor import sheet

    with usage_errors():
        out.write_text(sheet.page(_with_lab(name), base=base or sheet.HERE), "utf-8")
    console.print(f"{out}", style="dim")
