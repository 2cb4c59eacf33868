"""`kept`: list, or move back, runs that could not be saved where runs are stored."""

import click

from experiments.cli import console
from experiments.cli.options import runs_option
from experiments.runs import store


@click.command("kept", short_help="List runs kept in the temporary folder, for lack of space.")
@click.option("--move", is_flag=True, help="move them to where runs are stored")
@runs_option
def kept_command(move: bool, runs: str) -> int:
    """List runs that were saved in the temporary folder because the folder of runs was full or not writable."""
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
        console.note(f"lockstep kept --move moves them to {runs}.")
    return code
