"""`new` and `golden`: commands for authors."""

import shutil
from contextlib import nullcontext
from pathlib import Path

import click

import lessons
from experiments.jobs.dask_cluster import VARIABLE, mapping
from installation import for_authors
from lessons import golden, timelines
from lessons.cli.console import console, usage_errors

HOME = Path(lessons.__file__).parent
TEMPLATE = HOME / "template"


@click.command(
    "golden", help="For authors: record a chapter. Runs all its figures and quiz items, and writes its golden file."
)
@click.argument("name")
@click.option("--only", multiple=True, metavar="FIGURE", help="a figure or quiz item; the rest stays as recorded")
@click.option("--missing", is_flag=True, help="record only what is not recorded yet")
@click.option("--pool", "address", envvar=VARIABLE, metavar="ADDRESS", help="run the figures on a Dask cluster")
def write_golden(name: str, only: tuple[str, ...], missing: bool, address: str | None) -> None:
    with usage_errors():
        for_authors()
        one = lessons.chapter(name)
        chosen = [*only, *(one.missing_results if missing else ())]
        with console.status("") as status, mapping(address) if address else nullcontext() as imap:
            new = one.recompute(status.update, chosen if only or missing else None, imap)
        for full, recorded in new.figures.items():
            if missed := [claim for claim in recorded.claims if not recorded.shows(claim)]:
                raise ValueError(f"{full}: not every seed shows these claims: {'; '.join(missed)}.")
            for change in golden.differences(was.rows, recorded.rows) if (was := one.golden.figures.get(full)) else ():
                console.print(f"{full}: {change}", highlight=False, markup=False)
        golden.write(new, one.folder / "golden.json")
        timelines.write(one.folder, one.timelines)
    console.print(f"{len(new.figures)} figures and {len(new.answers)} quiz items written.", highlight=False)


@click.command("new", help="For authors: start a chapter. Creates its folder with templates for all files.")
@click.argument("name")
def begin(name: str) -> None:
    with usage_errors():
        for_authors()
        if not name.isidentifier() or name != name.lower():
            raise ValueError(
                f"{name[:60]!r} is not a valid chapter name; use lower-case letters and _, as in shared_memory."
            )
        folder = HOME / name
        if folder.exists():
            raise ValueError(f"{folder} already exists; choose another name.")
        shutil.copytree(TEMPLATE, folder, ignore=shutil.ignore_patterns("__*"))
        for path in folder.iterdir():
            path.write_text(path.read_text("utf-8").replace("lessons.template", f"lessons.{name}"), "utf-8")
    todo = sum(path.read_text("utf-8").count("WRITE") for path in folder.iterdir())
    console.print(f"{folder}: fill in the {todo} places marked WRITE.", highlight=False)
    console.print(
        f'Add "{name}", to CHAPTERS in lessons/__init__.py, at its place in the course. Then:', highlight=False
    )
    for words in (f"show {name} --draft", f"golden {name}", f"lab {name} --record"):
        console.print(f"  lockstep book {words}", highlight=False)
