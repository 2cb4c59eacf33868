"""Repeat the stored run of a script, for `replay`: report whether it is the same, or where and why it differs."""

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.cli.console import say, wrap
from experiments.cli.running import EXIT
from experiments.cli.script import run_script
from experiments.runs import store
from experiments.runs.difference import other_arithmetic
from experiments.runs.script_run import ScriptRun, hash_file
from experiments.runs.script_verdict import difference


def replay(folder: Path) -> int:
    """Run the script of this folder again, print what differs, and return the exit code. Raise ValueError if the run is
    not repeatable.
    """
    before = store.load_script(folder)
    if not before.experiment.is_repeatable:
        raise ValueError(
            f"{folder.name} ran with --clock measured, whose times are never the same twice; run the script again and "
            "compare the two."
        )
    if before.status == "cancelled":
        raise ValueError(
            f"{folder.name} was interrupted, so there are no final results to compare; run the script again."
        )
    again = run_script(before.experiment, title=f"replay {before.experiment.name}")
    if again.status == "cancelled":
        click.echo("interrupted before the end: the results were not compared.", err=True)
        return EXIT["cancelled"]
    differs = difference(before, again)
    failed = "it failed again in the same way; " * (again.status == "failed")
    same = f"{failed}identical, bit for bit: {folder.name}, digest {again.digest}"
    say(wrap(f"different: {differs}." if differs else same, "  "))
    for reason in changes(before, again):
        say(wrap(f"  {reason}", "    "))
    return 1 if differs else 0


def changes(before: ScriptRun, again: ScriptRun) -> Iterator[str]:
    """Yield sentences on what has changed since the run was stored: files that the script reads, libraries, Python, or
    Lockstep itself.
    """
    home = Path(before.experiment.path).resolve().parent
    for name, digest in before.files.items():
        now = hash_file(home / name)
        if now != digest:
            yield f"{name}, which the script reads, {'has changed since' if now else f'is not in {home} any more'}."
    for name in sorted(again.files.keys() - before.files.keys()):
        yield f"{name}, which the script now reads from {home}, was not there when the run was stored."
    yield from (f"{other}." for other in other_arithmetic(before.environment, again.environment))
    for name in ("code", "python"):
        old, new = before.environment.get(name), again.environment.get(name)
        if old != new and old and new:
            yield f"{name} was {old} and is now {new}."
