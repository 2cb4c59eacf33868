"""`show`: print the summary of a stored run again."""

import click

from experiments.cli import console, show_script
from experiments.cli.options import json_option, runs_option
from experiments.cli.run import tell
from experiments.runs import ending, store
from experiments.runs.script_run import ScriptRun


@click.command("show", short_help="Print the summary of a stored run.")
@click.argument("name", default="", metavar="RUN")
@runs_option
@json_option
def show_command(name: str, runs: str, as_json: bool) -> None:
    """Print the summary of a stored run, and why it ended early if it did. --json includes what a script printed."""
    folder = store.find(name, runs)
    run = store.load_any(folder)
    if isinstance(run, ScriptRun):
        show_script.tell(run, folder.resolve(), as_json)
        show_script.complain_of(run)
        return
    tell(run, folder.resolve(), as_json)
    if run.error:
        why = ending.explain_error(run)
        console.complain(f"{why.rstrip('.')}.")
