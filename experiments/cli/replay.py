"""`replay`: a stored run once more, to see whether it comes out bit for bit as before."""

from __future__ import annotations

from collections.abc import Iterator

import click

from experiments.cli.options import runs_option
from experiments.cli.running import EXIT, Bar, stoppable
from experiments.runs import store
from experiments.runs.record import Run


@click.command("replay")
@click.argument("name", metavar="RUN")
@runs_option
def replay_command(name: str, runs: str) -> int:
    """Repeat a stored run and compare the results, bit for bit."""
    from experiments.run import run
    from experiments.runs.compare import difference

    folder = store.find(name, runs)
    before = store.load(folder)
    with stoppable() as stop, Bar(f"replay {before.experiment.algorithm}") as bar:
        again = run(before.experiment, bar, stop)
    if again.status == "cancelled":
        click.echo("interrupted before the end: nothing can be said.", err=True)
        return EXIT["cancelled"]
    differs = difference(before, again)
    if not differs:
        click.echo(f"identical, bit for bit: {folder.name}, digest {again.summary['digest']}")
        return 0
    real = before.experiment.cluster != "simulated"
    if real and before.status == again.status and before.summary.get("weights") == again.summary.get("weights"):
        click.echo("the same weights, bit for bit; only times differ, as they always do on a real cluster.")
        return 0
    click.echo(f"different: {differs}.")
    for reason in reasons(before, again):
        click.echo(f"  {reason}")
    return 1


def reasons(before: Run, again: Run) -> Iterator[str]:
    """Yield why a replay may differ."""
    if before.experiment.cluster != "simulated":
        yield "on a real cluster an asynchronous method depends on who comes first, which is never the same twice."
    for name in ("code", "numpy", "numba", "torch", "python", "machine"):
        old, new = before.environment.get(name), again.environment.get(name)
        if old != new and old and new:
            yield f"{name} was {old} then and is {new} now."
