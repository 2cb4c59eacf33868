"""`compare`: stored runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

import click

from experiments.cli.options import json_option, runs_option
from experiments.runs import store


@click.command("compare", short_help="Lay stored runs side by side.")
@click.argument("names", nargs=-1, metavar="RUN...")
@runs_option
@click.option("--seeds", is_flag=True, help="one row, mean and spread, for runs that differ only in their seed")
@json_option
def compare_command(names: Sequence[str], runs: str, seeds: bool, as_json: bool) -> None:
    """Lay stored runs side by side: the settings in which they differ, and their main figures.

    Each later run is compared with the first: is it the same training up to rounding, and if not, where do they
    diverge?
    """
    from experiments.cli.comparison import SHORT, side_by_side

    if seeds and (number := next((name for name in names if name.isdigit() and len(name) < SHORT), None)):
        raise click.UsageError(
            f"compare --seeds takes no number, and {number} was given: it groups the runs that you name, however many "
            "differ only in their seed. Leave it out; sweep --seeds makes such runs."
        )
    folders = [store.find(name, runs) for name in names or [""]]
    found = [store.load(folder) for folder in folders]
    click.echo(side_by_side(found, folders, seeds, as_json, agreements=True))
