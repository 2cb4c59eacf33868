"""`compare`: stored runs side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from experiments.cli import show
from experiments.cli.options import json_option, runs_option
from experiments.runs import store


@click.command("compare")
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@runs_option
@json_option
def compare_command(names: Sequence[str], runs: str, as_json: bool) -> None:
    """The settings in which stored runs differ, and their main figures."""
    from experiments.runs.compare import compare

    folders = [store.find(name, runs) for name in names]
    rows = compare([store.load(folder) for folder in folders])
    rows = [{"run": folder.name, **row} for folder, row in zip(folders, rows, strict=True)]
    click.echo(json.dumps(rows, indent=1) if as_json else show.fitted(rows))
