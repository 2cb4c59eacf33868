"""The command line: list, run, sweep, compare, replay and export experiments.

    python -m experiments run easgd --workers 8 --period 10 --network 10GbE

Exit codes: 0 done; 1 the run failed or diverged, or a replay differs; 2 a mistake in what was asked, said in one
sentence; 130 interrupted, with what was recorded kept.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import click

import algorithms
from algorithms import compression
from experiments.cli import options, show
from experiments.cli.options import ExperimentCommand, runs_option
from experiments.cli.partition import partition_command, profile_command
from experiments.cli.schedule import schedule_command
from experiments.experiment import Experiment
from experiments.measure.fit import fit_command
from experiments.measure.kernel_times import kernels_command
from experiments.runs import store
from experiments.runs.record import Run
from experiments.runs.upload import add_command

EXIT = {"finished": 0, "diverged": 1, "failed": 1, "cancelled": 130}

json_option = click.option("--json", "as_json", is_flag=True, help="print the summary as JSON")
from_option = click.option("--from", "start", metavar="LINK|FILE|RUN", help="begin with this experiment")


@click.group(context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 120})
def cli() -> None:
    """Lockstep: parallel training of deep networks, run and seen."""


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="print the catalogue as JSON")
def catalogue(as_json: bool) -> None:
    """All algorithms by family, and all compressions, each with its idea."""
    entries = [
        {"family": algorithms.family(name), "name": name, "idea": algorithms.idea(algorithms.module(name))}
        for name in algorithms.names()
    ]
    entries += [
        {"family": "compression", "name": name, "idea": algorithms.idea(compression.module(name))}
        for name in compression.COMPRESSIONS
    ]
    if as_json:
        click.echo(json.dumps(entries, indent=1))
        return
    family, width = None, max(len(entry["name"]) for entry in entries)
    for entry in entries:
        if entry["family"] != family:
            family = entry["family"]
            click.echo(f"\n{family.replace('_', ' ')}")
        click.echo(f"  {entry['name']:<{width}} {entry['idea']}")
    able = [name for name in algorithms.names() if algorithms.find(name).compresses]
    click.echo("\npython -m experiments run NAME --help shows the settings of one;")
    click.echo(f"--compression NAME compresses the gradients of {', '.join(able)}.")


@cli.command("run", cls=ExperimentCommand)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
def run_command(name: str | None, start: str | None, runs: str, as_json: bool, **given: Any) -> int:
    """Run one experiment, store it and print its summary."""
    from experiments.run import join, run

    values = options.values(given)
    experiment = _experiment(name, start, runs, values)
    ranks = _joined()
    if ranks:
        done = join(_among(experiment, ranks, "workers" in values))
        return conclude(done, runs, as_json) if done else 0
    _writable(runs)
    with _stoppable() as stop:
        with show.Bar(experiment.algorithm) as bar:
            done = run(experiment, bar, stop)
        return conclude(done, runs, as_json)


@cli.command("sweep", cls=ExperimentCommand, many=True)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
def sweep_command(name: str | None, start: str | None, runs: str, as_json: bool, **given: Any) -> int:
    """Run every combination of the values given: --workers 1,2,4,8 --period 1,10 makes eight runs."""
    from experiments.runs.compare import compare, grid, swept

    names = name.split(",") if name else []
    base = _experiment(names[0] if names else None, start, runs, {})
    fixed, axes = options.axes(click.get_current_context().command, given)
    if len(names) > 1:
        axes = {"algorithm": names, **axes}
    experiments = grid(base, {**axes, **{name: [value] for name, value in fixed.items()}})  # a setting with its owner
    _writable(runs)
    made, folders, problem = [], [], ""
    with _stoppable() as stop, show.Bar("sweep") as bar:

        def tell(number: int, count: int, progress: Any) -> None:
            bar(progress, f"run {number + 1} of {count}")

        for done in swept(experiments, tell, stop):
            folder, trouble = store.save_somewhere(done, runs)
            problem = problem or trouble
            made.append(done)
            folders.append(folder)
    rows = [{"run": folder.name, **row} for folder, row in zip(folders, compare(made), strict=True)]
    click.echo(json.dumps(rows, indent=1) if as_json else show.table(rows))
    if problem:
        click.echo(problem, err=True)
    return max([2 if problem else 0, *(EXIT[done.status] for done in made)])


@cli.command("compare")
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@runs_option
@json_option
def compare_command(names: Sequence[str], runs: str, as_json: bool) -> None:
    """The settings in which stored runs differ, and their main figures."""
    from experiments.runs.compare import compare

    folders = [store.find(name, runs) for name in names]
    rows = compare([store.load(folder) for folder in folders])
    rows = [{"run": folder.name, **row} for folder, row in zip(folders, rows, strict=True)]
    click.echo(json.dumps(rows, indent=1) if as_json else show.table(rows))


@cli.command("replay")
@click.argument("name", metavar="RUN")
@runs_option
def replay_command(name: str, runs: str) -> int:
    """Run a stored run again and say whether the result is the same."""
    from experiments.run import run
    from experiments.runs.compare import difference

    folder = store.find(name, runs)
    before = store.load(folder)
    with _stoppable() as stop, show.Bar(f"replay {before.experiment.algorithm}") as bar:
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
    for reason in _reasons(before, again):
        click.echo(f"  {reason}")
    return 1


@cli.command("export")
@click.argument("name", metavar="RUN")
@click.option("--to", "form", required=True, metavar="FORM", help="csv, trace (Perfetto), html, svg, png or json")
@click.option("--out", metavar="FILE", help="where to write it [default: the run's name here]")
@runs_option
def export_command(name: str, form: str, out: str | None, runs: str) -> None:
    """Write a stored run in a form that other programs read."""
    from experiments.plots.export import SUFFIXES, export

    folder = store.find(name, runs)
    for path in export(store.load(folder), form, out or f"{folder.name}{SUFFIXES.get(form, '')}"):
        click.echo(str(path))


for _command in (schedule_command, profile_command, partition_command, kernels_command, fit_command, add_command):
    cli.add_command(_command)


def conclude(run: Run, runs: str, as_json: bool = False) -> int:
    """Store `run`, print what came of it, and give the exit code."""
    folder, problem = store.save_somewhere(run, runs)
    command = run.experiment.command()
    if as_json:
        told = {
            "status": run.status,
            "error": run.error,
            "notes": list(run.notes),
            "folder": str(folder),
            "command": command,
            "query": run.experiment.query(),
            "summary": run.summary,
            "experiment": json.loads(run.experiment.json()),
        }
        click.echo(json.dumps(told, indent=1))
    else:
        click.echo(f"{show.headline(run)}\n{show.summary(run)}")
        for note in run.notes:
            click.echo(f"  note           {note}")
        click.echo(f"stored  {folder}\nagain   {command}")
    if run.error:
        click.echo(f"{run.error.rstrip('.')}. What was recorded until then is kept in {folder}.", err=True)
    if problem:
        click.echo(problem, err=True)
        return 2
    return EXIT[run.status]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and give the exit code; every mistake becomes one sentence on stderr."""
    try:
        words = sys.argv[1:] if args is None else list(args)
        with _raising(), cli.make_context("python -m experiments", words) as context:
            code = cli.invoke(context)  # cli.main would end on a closed pipe itself
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except click.ClickException as error:
        message = error.format_message()
    except (ValueError, OSError) as error:
        message = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if os.environ.get("RANK", "0") == "0":  # of the ranks that torchrun started one speaks for all
        click.echo(message, err=True)
    return 2


def _experiment(name: str | None, start: str | None, runs: str, given: dict[str, Any]) -> Experiment:
    if name:
        given = {"algorithm": name, **given}
    return options.read(start, runs).change(**given) if start else Experiment.of(given)


def _joined() -> int | None:
    """How many ranks torchrun has started, this process among them; None if it has not."""
    if "WORLD_SIZE" not in os.environ:
        return None
    from cluster.real import torchrun

    return int(os.environ["WORLD_SIZE"]) if torchrun.joined() else None


def _among(experiment: Experiment, ranks: int, given: bool) -> Experiment:
    """The experiment with as many workers as torchrun's ranks leave it."""
    workers = ranks - experiment.servers
    if workers < 1 or (given and workers != experiment.workers):
        needed = f"{experiment.ranks} with so many workers" if given else f"{experiment.servers + 1} or more"
        raise ValueError(
            f"torchrun started {ranks} ranks, but {experiment.algorithm} needs {needed}; "
            "start as many, and leave --workers out: it follows from them."
        )
    cluster = "gpus" if experiment.cluster == "gpus" else "processes"
    return experiment.change(workers=workers, cluster=cluster)


def _writable(root: str) -> None:
    """Refuse a folder that cannot be written before the work and not after it."""
    import tempfile

    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise ValueError(
            f"runs cannot be stored in {root}: {error.strerror}; choose another folder with --runs."
        ) from None


def _stoppable() -> AbstractContextManager[Callable[[], bool]]:
    """What the first Ctrl-C (or a polite kill) makes True; the second interrupts at once."""
    from cluster.real.signals import noted

    return noted(signal.SIGINT, signal.SIGTERM)


@contextmanager
def _raising() -> Iterator[None]:
    """Have Ctrl-C raise KeyboardInterrupt in here, for there may be something to tidy up; see the top of this file."""
    ends = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if ends:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ends:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def _reasons(before: Run, again: Run) -> Iterator[str]:
    """Why a replay may differ."""
    if before.experiment.cluster != "simulated":
        yield "on a real cluster an asynchronous method depends on who comes first, which is never the same twice."
    for name in ("code", "numpy", "numba", "torch", "python", "machine"):
        old, new = before.environment.get(name), again.environment.get(name)
        if old != new and old and new:
            yield f"{name} was {old} then and is {new} now."
