"""`compare`: compare stored runs side by side."""

from collections.abc import Sequence

import click

from experiments.cli.console import refuse
from experiments.cli.options import json_option, runs_option
from experiments.runs import store


@click.command("compare", short_help="Compare stored runs side by side.")
@click.argument("names", nargs=-1, metavar="RUN...")
@runs_option
@click.option(
    "--seeds", is_flag=True, help="combine runs that differ only in their seed into one row, with mean and spread"
)
@json_option
def compare_command(names: Sequence[str], runs: str, seeds: bool, as_json: bool) -> None:
    """Compare stored runs side by side: the settings in which they differ, and their main figures.

    Each later run is compared with the first: whether it is the same training up to rounding and, if not, where they
    first differ. Runs of scripts are compared by their numbers, bit for bit, and by their times and waits.
    """
    from experiments.cli.comparison import SHORT, side_by_side

    if seeds and (number := next((name for name in names if name.isdigit() and len(name) < SHORT), None)):
        raise click.UsageError(
            f"--seeds is a flag and takes no number, but {number} was given. It groups the runs you name by seed. "
            "Remove the number; to create runs with several seeds, use sweep --seeds."
        )
    folders = [store.find(name, runs) for name in names or [""]]
    scripts = [folder for folder in folders if store.is_script(folder)]
    if scripts and len(scripts) < len(folders):
        other = next(folder for folder in folders if folder not in scripts)
        raise ValueError(
            f"{scripts[0].name} is a run of a script and {other.name} one of an experiment, which have no setting in "
            "common; compare runs of one kind, or the timelines of both: lockstep export RUN --to trace.json."
        )
    if scripts:
        from experiments.cli import script_table

        refuse("groups runs of experiments by seed, but runs of scripts have no seed; remove it.", "seeds")
        of_scripts = [store.load_script(folder) for folder in folders]
        click.echo(script_table.side_by_side(of_scripts, folders, as_json))
        return
    found = [store.load(folder) for folder in folders]
    click.echo(side_by_side(found, folders, seeds, as_json, agreements=True))
