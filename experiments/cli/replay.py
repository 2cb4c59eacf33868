"""`replay`: a stored run once more, to see whether it comes out as before: bit for bit, or to rounding elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.cli.console import folded, say
from experiments.cli.options import runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import EXIT, stoppable
from experiments.runs import sealed, store
from experiments.runs.record import Run


@click.command("replay", short_help="Repeat a stored run: does it come out the same?")
@click.argument("name", default="", metavar="RUN")
@runs_option
def replay_command(name: str, runs: str) -> int:
    """Repeat a stored run and compare the results: bit for bit, or to rounding if other arithmetic computes here."""
    from experiments.execution.run import run

    folder = store.find(name, runs)
    before = store.load(folder)
    with stoppable() as stop, Bar(f"replay {before.experiment.algorithm}") as bar:
        again = run(before.experiment, bar, stop)
    if again.status == "cancelled":
        click.echo("interrupted before the end: nothing can be said.", err=True)
        return EXIT["cancelled"]
    return max(doubts(folder), told(folder.name, before, again))


def doubts(folder: Path) -> int:
    """Say what of a stored run is not as it was stored; return 1 if anything is not."""
    changed = sealed.altered(folder)
    if not changed:
        return 0
    if changed == [sealed.SUMS]:
        say(folded(f"whether it was altered cannot be told: it has no {sealed.SUMS} to compare with.", "  "))
        return 0
    say(folded(f"altered since it was stored, as its {sealed.SUMS} says: {', '.join(changed)}.", "  "))
    return 1


def told(name: str, before: Run, again: Run) -> int:
    """Say whether a run of this name came out as before, or what differs and why; return the exit code."""
    from experiments.runs import difference as compared

    if not (differs := compared.difference(before, again)):
        say(folded(f"identical, bit for bit: {name}, digest {again.summary['digest']}", "  "))
        return 0
    real = before.experiment.cluster != "simulated"
    if real and before.status == again.status and before.summary.get("weights") == again.summary.get("weights"):
        say(folded("the same weights, bit for bit; only times differ, as they always do on a real cluster.", "  "))
        return 0
    others = compared.other_arithmetic(before.environment, again.environment)
    if others and not (differs := compared.difference(before, again, compared.tolerance(before))):
        most = compared.largest(before, again)
        told = f"{'; '.join(others)}; equal to rounding, largest difference {most:.0e} of a column's largest number"
        say(folded(told, "  "))
        return 0
    if others and (alike := compared.alike_until(before, again)):
        told = f"equal to rounding in the first {alike} of {len(before.losses['loss'])} losses, then apart: {differs}"
        say(folded(f"{'; '.join(others)}; {told}.", "  "))
    else:
        say(folded(f"different: {differs}.", "  "))
    for reason in reasons(before, again, others):
        say(folded(f"  {reason}", "    "))
    return 1


def reasons(before: Run, again: Run, others: list[str]) -> Iterator[str]:
    """Yield why a replay may differ; `others` is what computes differently here."""
    from experiments.runs import difference as compared

    if before.experiment.cluster != "simulated":
        yield "on a real cluster an asynchronous method depends on who comes first, which is never the same twice."
    if others and compared.alike_until(before, again):
        yield (
            "training may have amplified what was rounding, as where gradients are quantised or steps are large; only "
            "what computed then can tell."
        )
    else:
        yield from (f"{other}." for other in others)
    for name in ("code", "python"):
        old, new = before.environment.get(name), again.environment.get(name)
        if old != new and old and new:
            yield f"{name} was {old} then and is {new} now."
