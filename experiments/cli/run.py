"""`run`: run one experiment, here or as one of a launcher's ranks, store it and print its summary.

With `--to slurm`, print or submit it as a batch job instead.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from cluster.comm import ClusterError
from cluster.real import launchers
from experiments.cli import console, options, show, slurm
from experiments.cli.options import ExperimentCommand, FiniteRange, from_option, json_option, runs_option
from experiments.cli.progress_bar import Bar
from experiments.cli.running import EXIT, base_experiment, check_writable, pool_at, pool_option, stoppable
from experiments.jobs.dask_cluster import may_leave
from experiments.runs import ending, store
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording import naming


@click.command("run", cls=ExperimentCommand)
@click.argument("name", required=False)
@from_option
@runs_option
@json_option
@click.option(
    "--timeout",
    type=FiniteRange(0, min_open=True),
    default=60.0,
    metavar="FLOAT",
    help="seconds that a rank of a real cluster waits for another before it gives up [default: 60]",
)
@pool_option
@slurm.slurm_options
def run_command(
    name: str | None, start: str | None, runs: str, as_json: bool, timeout: float, address: str | None, **given: Any
) -> int:
    """Run one experiment, store it and print its summary."""
    from experiments.execution.run import run

    job = slurm.batch_options(given)
    values = options.values(given)
    experiment = base_experiment(name, start, runs, values)
    if job:
        return queue(experiment, job, runs, timeout)
    if here := launchers.variables():
        experiment = fit_to_ranks(experiment, int(here["WORLD_SIZE"]), "workers" in values)
        return run_as_rank(experiment, here["RANK"], runs, as_json, timeout)
    check_writable(runs)
    with stoppable() as stop:
        if address and may_leave(experiment):
            return run_in_pool(experiment, address, runs, as_json, stop)
        with Bar(experiment.algorithm) as bar:
            done = run(experiment, bar, stop, timeout=timeout)
        return conclude(done, runs, as_json)


def run_in_pool(experiment: Experiment, address: str, runs: str, as_json: bool, stop: Callable[[], bool]) -> int:
    """Run `experiment` on the Dask cluster at `address`, unless its run is already stored. Print the run's summary, and
    return the exit code.
    """
    from experiments.study.sweep import stored_sweep

    with pool_at(address, runs) as pool:
        ended = [*stored_sweep([experiment], runs, stop=stop, pool=pool)]
    if not ended:  # stopped before its first step
        return EXIT["cancelled"]
    one = ended[0]
    return report(store.load(one.folder), one.folder, one.trouble, as_json)


def run_as_rank(experiment: Experiment, rank: str, runs: str, as_json: bool, timeout: float) -> int:
    """Run `experiment` as one of the ranks that a launcher started, and return the exit code. Rank 0 stores the record
    and prints its summary.

    Rank 0 reports for all ranks, except for those that cannot reach it.
    """
    from experiments.execution.run import join

    try:
        done = join(experiment, timeout)
    except (ClusterError, ConnectionError, TimeoutError) as error:
        click.echo(f"rank {rank}: {error}", err=True)
        return EXIT["failed"]
    return conclude(done, runs, as_json) if done else 0


def queue(experiment: Experiment, job: dict[str, Any], runs: str, timeout: float) -> int:
    """Print the batch job that runs `experiment`, or submit it and print its number. Return the exit code."""
    from experiments.execution.run import check

    if experiment.cluster == "threads":
        raise ValueError(
            "cluster: SLURM starts one process per task, so threads cannot be used; use processes, or gpus."
        )
    experiment = on_real_cluster(experiment)
    check(experiment, here=False)
    text = slurm.script(experiment, job, "--runs", os.path.abspath(runs), "--timeout", f"{timeout:g}")
    return slurm.queue(text, job, runs, f"it writes to {experiment.algorithm}-%j.out")


def conclude(run: Run, runs: str, as_json: bool = False) -> int:
    """Store `run`, print its summary, and return the exit code."""
    return report(run, *store.save_somewhere(run, runs), as_json)


def report(run: Run, folder: Path, problem: str, as_json: bool) -> int:
    """Print the summary of a stored run, why it ended early, and any `problem` of storing it. Return the exit code."""
    with console.unheard(sys.stdout):
        tell(run, folder.resolve(), as_json)
        sys.stdout.flush()
    if run.error:
        why = ending.explain_error(run).rstrip(".")
        console.complain(f"{why}. Everything recorded until then is kept in {folder.resolve()}.")
    if problem:
        console.complain(problem)
        return 2
    return EXIT[run.status]


def tell(run: Run, folder: Path, as_json: bool) -> None:
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
        console.say((show.headline(run), console.HEAD))
        show.summary(run)
        for note in run.notes:
            said = naming.readable(run.experiment, note)
            console.say(("  note           ", console.DIM), console.wrap(" " * 17 + said, " " * 17).lstrip())
        console.say()
        console.say(("stored  ", console.DIM), str(folder))
        if link := show.link(run, folder):
            console.say(("open    ", console.DIM), link)
            console.note("        while the workbench is running (start it with lockstep)")
        console.command("again", command)


def fit_to_ranks(experiment: Experiment, ranks: int, given: bool) -> Experiment:
    """Return the experiment on a real cluster, with as many workers as fit the number of ranks that a launcher started.

    Raise ValueError if there are too few ranks, or if the number of workers is `given` and does not fit them.
    """
    workers = ranks - experiment.servers
    if workers < 1 or (given and workers != experiment.workers):
        needed = (
            f"{experiment.ranks} with --workers {experiment.workers}" if given else f"{experiment.servers + 1} or more"
        )
        raise ValueError(
            f"the launcher started {ranks} ranks, but {experiment.algorithm} needs {needed}; start that many, or "
            "remove --workers, which then follows from the number of ranks."
        )
    return on_real_cluster(experiment.change(workers=workers))


def on_real_cluster(experiment: Experiment) -> Experiment:
    """Return the experiment on a real cluster: on GPUs if it asks for them, otherwise on processes."""
    return experiment if experiment.cluster == "gpus" else experiment.change(cluster="processes")
