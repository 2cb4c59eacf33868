"""`export`: a stored run in a form that other programs read."""

from __future__ import annotations

import click

from experiments.cli.options import runs_option
from experiments.runs import store


@click.command("export")
@click.argument("name", metavar="RUN")
@click.option("--to", "form", required=True, metavar="FORM", help="csv, trace (Perfetto), html, svg, png or json")
@click.option("--out", metavar="FILE", help="where to write it [default: the run's name here]")
@runs_option
def export_command(name: str, form: str, out: str | None, runs: str) -> None:
    """Write a stored run in a form that other programs read."""
    from experiments.plots.export import SUFFIXES, export

    folder = store.find(name, runs)
    for path in export(store.load(folder), form, out or f"{folder.name}{SUFFIXES.get(form, '')}"):
        click.echo(str(path))
