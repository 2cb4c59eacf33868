"""`replay`: repeat a stored run and compare the results: bit for bit, or up to rounding on another kind of machine."""

from collections.abc import Iterator
from pathlib import Path

import click

from experiments.cli import replay_script
from experiments.cli.console import say, wrap
from experiments.cli.options import runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import EXIT, stoppable
from experiments.runs import sealed, store
from experiments.runs.record import Run


@click.command("replay", short_help="Repeat a stored run and compare the result.")
@click.argument("name", default="", metavar="RUN")
@runs_option
def replay_command(name: str, runs: str) -> int:
    """Repeat a stored run and compare the results: bit for bit, or up to rounding if the arithmetic here differs.

    A script is run from its stored source.
    """
    from experiments.execution.run import run

    folder = store.find(name, runs)
    if store.is_script(folder):
        return max(doubts(folder), replay_script.replay(folder))
    before = store.load(folder)
    with stoppable() as stop, Bar(f"replay {before.experiment.algorithm}") as bar:
        again = run(before.experiment, bar, stop)
    if again.status == "cancelled":
        click.echo("interrupted before the end: the results were not compared.", err=True)
        return EXIT["cancelled"]
    return max(doubts(folder), report_replay(folder.name, before, again))


def doubts(folder: Path) -> int:
    """Print which files of a stored run have changed since it was stored, or that there is no record to compare with.
    Return 1 if a file has changed, else 0.
    """
    changed = sealed.altered_files(folder)
    if not changed:
        return 0
    if changed == [sealed.SUMS]:
        say(wrap(f"cannot tell whether this run was altered: it has no {sealed.SUMS} to compare with.", "  "))
        return 0
    say(wrap(f"altered since it was stored, according to its {sealed.SUMS}: {', '.join(changed)}.", "  "))
    return 1


def report_replay(name: str, before: Run, again: Run) -> int:
    """Print whether the replay has the same results and, if not, what differs and why. Return the exit code."""
    from experiments.runs import difference as compared

    if not (differs := compared.difference(before, again)):
        say(wrap(f"identical, bit for bit: {name}, digest {again.summary['digest']}", "  "))
        return 0
    real = before.experiment.cluster != "simulated"
    if real and before.status == again.status and before.summary.get("weights") == again.summary.get("weights"):
        say(wrap("the same weights, bit for bit; only the times differ, as always on a real cluster.", "  "))
        return 0
    others = compared.other_arithmetic(before.environment, again.environment)
    if others and not (differs := compared.difference(before, again, compared.tolerance(before))):
        most = compared.largest(before, again)
        told = (
            f"{'; '.join(others)}; equal up to rounding: the largest difference is {most:.0e} of a column's largest "
            "number"
        )
        say(wrap(told, "  "))
        return 0
    if others and (alike := compared.alike_until(before, again)):
        of = len(before.losses["loss"])
        told = f"equal up to rounding in the first {alike} of {of} losses; after these: {differs}"
        say(wrap(f"{'; '.join(others)}; {told}.", "  "))
    else:
        say(wrap(f"different: {differs}.", "  "))
    for reason in reasons(before, again, others):
        say(wrap(f"  {reason}", "    "))
    return 1


def reasons(before: Run, again: Run, others: list[str]) -> Iterator[str]:
    """Yield reasons why a replay may differ; `others` names what computes differently, such as BLAS kernels."""
    from experiments.runs import difference as compared

    if before.experiment.cluster != "simulated":
        yield (
            "on a real cluster, an asynchronous method depends on the order of arrival, which is never the same twice."
        )
    if others and compared.alike_until(before, again):
        yield (
            "training may have amplified rounding errors, as it does with quantised gradients or large steps; only "
            "the original machine and software can tell."
        )
    else:
        yield from (f"{other}." for other in others)
    for name in ("code", "python"):
        old, new = before.environment.get(name), again.environment.get(name)
        if old != new and old and new:
            yield f"{name} was {old} and is now {new}."
