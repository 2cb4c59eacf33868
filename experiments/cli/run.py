"""`run`: one experiment, here or as one of the ranks that torchrun has started; stored, with its summary printed."""

from __future__ import annotations

import json
import os
from typing import Any

import click

from experiments.cli import options, show
from experiments.cli.options import ExperimentCommand, from_option, json_option, runs_option
from experiments.cli.running import EXIT, Bar, base_experiment, check_writable, stoppable
from experiments.experiment import Experiment
from experiments.runs import store
from experiments.runs.record import Run


@click.command("run", cls=ExperimentCommand)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
def run_command(name: str | None, start: str | None, runs: str, as_json: bool, **given: Any) -> int:
    """Run one experiment, store it and print its summary."""
    from experiments.run import join, run

    values = options.values(given)
    experiment = base_experiment(name, start, runs, values)
    ranks = torchrun_ranks()
    if ranks:
        done = join(fitted_to(experiment, ranks, "workers" in values))
        return conclude(done, runs, as_json) if done else 0
    check_writable(runs)
    with stoppable() as stop:
        with Bar(experiment.algorithm) as bar:
            done = run(experiment, bar, stop)
        return conclude(done, runs, as_json)


def conclude(run: Run, runs: str, as_json: bool = False) -> int:
    """Store `run`, print its summary, and return the exit code."""
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
            click.echo(show.folded(f"  note           {note}", " " * 17))
        click.echo(f"stored  {folder}\nagain   {command}")
    if run.error:
        click.echo(f"{run.error.rstrip('.')}. What was recorded until then is kept in {folder}.", err=True)
    if problem:
        click.echo(problem, err=True)
        return 2
    return EXIT[run.status]


def torchrun_ranks() -> int | None:
    """Return how many ranks torchrun has started, this process among them; None if it has not."""
    if "WORLD_SIZE" not in os.environ:
        return None
    from cluster.real import torchrun

    return int(os.environ["WORLD_SIZE"]) if torchrun.joined() else None


def fitted_to(experiment: Experiment, ranks: int, given: bool) -> Experiment:
    """Return the experiment with as many workers as torchrun's ranks leave it. ValueError if those do not fit."""
    workers = ranks - experiment.servers
    if workers < 1 or (given and workers != experiment.workers):
        needed = f"{experiment.ranks} with so many workers" if given else f"{experiment.servers + 1} or more"
        raise ValueError(
            f"torchrun started {ranks} ranks, but {experiment.algorithm} needs {needed}; "
            "start as many, and leave --workers out: it follows from them."
        )
    cluster = "gpus" if experiment.cluster == "gpus" else "processes"
    return experiment.change(workers=workers, cluster=cluster)
