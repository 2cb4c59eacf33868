"""`survey` and `bib`: print the sources by section, the costs of each method, and BibTeX for everything cited."""

import csv
import sys
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Column, Table

import lessons
from experiments.cli.console import refuse
from lessons.cli.console import console, usage_errors

OF_THE_TABLE = ("family", "workers", "batch", "model", "layers", "width", "period", "chunks", "network", "device")
LIKE_A_STACK = ("layers", "width")


@click.command(
    help="Print the survey and its four companions by section. With --costs: what a step of each method costs."
)
@click.option("--costs", is_flag=True, help="the table of computation, communication, memory, staleness, idle time")
@click.option("--family", default="", help="methods of this family only")
@click.option("--workers", type=click.IntRange(2, 4096), default=8, help="workers of the cluster")
@click.option("--batch", type=click.IntRange(1), default=32, help="samples per worker and step")
@click.option("--model", default="", help="a model of the Survey page, such as VGG-16, instead of --layers and --width")
@click.option("--layers", type=click.IntRange(1), default=32, help="dense layers of the model")
@click.option("--width", type=click.IntRange(1), default=4096, help="units of each layer")
@click.option("--period", type=click.IntRange(1), help="steps between two exchanges, instead of each method's own")
@click.option("--chunks", type=click.IntRange(1), help="micro-batches of a pipeline, instead of each method's own")
@click.option("--network", default="10GbE", help="preset of the network")
@click.option("--device", default="A100", help="preset of the device")
@click.option("--csv", "file", type=click.Path(dir_okay=False, path_type=Path), help="write the table to this file")
def survey(costs, family, workers, batch, model, layers, width, period, chunks, network, device, file) -> None:
    from lessons import survey as companion

    with usage_errors():
        chosen = {symbol: value for symbol, value in (("H", period), ("M", chunks)) if value}
        cluster = companion.Cluster(workers, batch, network, device, chosen)
        if not costs and not file:
            refuse("applies to the table of costs; add --costs, or remove this option.", *OF_THE_TABLE)
            return _sections(companion)
        if model:
            refuse("is part of the model; remove --model or this option.", *LIKE_A_STACK)
        priced = _find(companion.MODELS, model) if model else companion.Stack(layers, width)
        rows = companion.table(priced, cluster)
    families = dict.fromkeys(row["family"] for row in rows)
    if family and family not in families:
        raise click.UsageError(f"there is no family {family[:40]!r}; choose one of {', '.join(families)}.")
    rows = [row for row in rows if not family or row["family"] == family]
    if file:
        write_csv(rows, file)
        console.print(str(file), style="dim")
        return
    console.print(f"{companion.the_step(priced, cluster)}\n", highlight=False)
    for row in rows:
        console.print(f"[bold]{row['method']}[/]  {row['approximation']}", highlight=False)
        console.print(f"  {'waits for':14} {row['waits']}", highlight=False)
        if settings := companion.in_one_cell(row["settings"]):
            console.print(f"  {'with':14} {settings}", highlight=False)
        for quantity in companion.costs.QUANTITIES:
            if quantity == "server" and not row[quantity]:
                continue
            number = companion.format_quantity(row[f"{quantity} value"], companion.UNITS[quantity])
            console.print(f"  {quantity:14} {number:>12}  [dim]{row[quantity]}[/]", highlight=False)
    _symbols(companion.symbols_of(rows))


def _find(models: Mapping[str, Any], name: str) -> Any:
    """Return the model with this name, ignoring upper and lower case. Raise ValueError if there is none."""
    for known, model in models.items():
        if known.casefold() == name.casefold():
            return model
    raise ValueError(f"there is no model {name[:40]!r}; choose one of {'; '.join(models)}.")


def _symbols(symbols: dict[str, str]) -> None:
    console.print("\nSymbols", style="bold")
    for symbol, meaning in symbols.items():
        console.print(f"  {symbol}  {meaning}", highlight=False)


def _sections(companion) -> None:
    """Print the sources, with their methods in tables that are 80 columns wide."""
    rows = companion.rows()
    widest = max(len(row["module"].partition(".")[2]) for row in rows)
    for source in companion.sources():
        console.print(f"\n[bold]{source.title}[/]\n{source.venue}. {source.result}", highlight=False)
        figure = f"Figure {source.figure}. " if source.figure else ""
        console.print(f"{figure}{source.instead}", style="dim", highlight=False)
        own = [row for row in rows if row["source"] == source.key]
        for section, there in groupby(own, lambda row: row["section"]):
            table = Table(
                Column("ref", width=max(3, *(len(row["reference"]) for row in own))),
                Column("work", overflow="fold", ratio=1),
                Column("module", width=widest, overflow="fold"),
                Column("figures", width=18, overflow="fold"),
                box=None,
                pad_edge=False,
                expand=True,
                show_header=section == own[0]["section"],
            )
            for row in there:
                module = row["module"].partition(".")[2] or row["without"]
                table.add_row(row["reference"], row["work"], module, _figures(companion, row))
            console.print(f"\n[bold]{section}[/]", highlight=False)
            console.print(table, highlight=False)
    _published(companion)


def _published(companion) -> None:
    """Print the numbers from publications that the book recomputes."""
    console.print("\n[bold]Published numbers, computed again[/]", highlight=False)
    for one in companion.PUBLISHED:
        figure = f" (figure {one.figure})" if one.figure else " (a closed form)"
        console.print(f"{one.work}\n  published  {one.theirs}\n  here       {one.ours()}{figure}", highlight=False)


def _figures(companion, row: dict) -> str:
    """Return the numbers of the figures that show a method.

    If there are none, return the numbers of the chapters that show its code.
    """
    first, more = companion.first_figures(row)
    shown = [*first] or [f"chapter {lessons.chapter(name).number}" for name in row["chapters"]]
    return ", ".join([*shown, *([f"+{more}"] if more else [])])


def write_csv(rows: list[dict], file: Path) -> None:
    """Write the rows of the cost table to `file` as CSV. A list is written to a single cell."""
    from lessons import survey as companion

    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({key: companion.in_one_cell(value) for key, value in row.items()})


@click.command(help="Print BibTeX for everything that Lockstep cites.")
@click.option(
    "--cited-by", default="", help="only the works that this chapter or module cites, such as averaging or easgd"
)
def bib(cited_by: str) -> None:
    from lessons.survey import bibliography

    with usage_errors():
        entries = bibliography.cited_by(cited_by) if cited_by else bibliography.entries()
    Console(file=sys.stdout, soft_wrap=True).print(
        "\n".join(map(bibliography.bibtex, entries)), highlight=False, markup=False
    )
