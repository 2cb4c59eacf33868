"""`kept`: runs that had no room where runs are stored, and how they come there."""

from __future__ import annotations

import click

from experiments.cli import console
from experiments.cli.options import runs_option
from experiments.runs import store


@click.command("kept", short_help="Runs kept in the temporary folder, since there was no room.")
@click.option("--move", is_flag=True, help="move them to where runs are stored")
@runs_option
def kept_command(move: bool, runs: str) -> int:
    """List the runs that were kept in the temporary folder, since theirs was full or could not be written to."""
    folders, code = store.elsewhere(), 0
    for folder in folders:
        try:
            place = store.move(folder, runs) if move else folder
        except (ValueError, OSError) as error:
            console.complain(str(error))
            code = 2
        else:
            console.say(str(place.resolve()))
    if not folders:
        console.note("there are none.")
    elif not move:
        console.note(f"lockstep kept --move brings them to {runs}.")
    return code
