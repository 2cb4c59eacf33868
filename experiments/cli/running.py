"""Shared by commands that run experiments: reading the experiment, Ctrl-C, checking the folder of runs, exit codes."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from experiments.cli import options
from experiments.cli.console import complain
from experiments.jobs.dask_cluster import VARIABLE
from experiments.specification.experiment import Experiment

if TYPE_CHECKING:
    from experiments.jobs.pool import Pool

LONGEST = 7 * 86400.0  # s that a run of one's own may take
MOST_MEMORY = 10**15  # bytes: the cluster's workers have limits of their own
EXIT = {"finished": 0, "diverged": 1, "failed": 1, "cancelled": 130}
BEST = "best"  # learning rate at which the experiment's final loss is lowest


def stoppable() -> AbstractContextManager[Callable[[], bool]]:
    """Return a context that yields a function, which returns True after Ctrl-C. A second Ctrl-C interrupts at once."""
    from cluster.real.signals import catch_signals, stop_signals

    return catch_signals(*stop_signals())


def check_plot(file: str) -> None:
    """Raise ValueError unless the file that a plot is written to ends in .svg."""
    if not file.endswith(".svg"):
        raise ValueError(f"plot: {file[:60]!r} should end in .svg.")


def base_experiment(name: str | None, start: str | None, runs: str, given: dict[str, Any]) -> Experiment:
    """Return the experiment of a command line: `start` (a link, file or run) or the defaults, changed by `given`.

    A learning rate of "best" is replaced by the best one that is known or found; stderr says where it comes from.
    """
    if name:
        given = {"algorithm": name, **given}
    searched = given.get("learning_rate") == BEST
    if searched:
        given = {setting: value for setting, value in given.items() if setting != "learning_rate"}
    made = options.read(start, runs).change(**given) if start else Experiment.of(given)
    made.refuse_idle(given)
    return at_best([made], runs)[0] if searched else made


def at_best(experiments: Sequence[Experiment], runs: str) -> list[Experiment]:
    """Return the experiments, each at its best learning rate. Print these learning rates, and where they come from, on
    stderr.
    """
    from experiments.study import rates

    best, told = [], set()
    for one in experiments:
        made, source = rates.at_best(one, runs)
        best.append(made)
        words = f"{one.algorithm}: best learning rate {made.settings['learning_rate']:g}, {source}"
        if words not in told:  # once for all seeds
            complain(words)
        told.add(words)
    return best


pool_option = click.option(
    "--pool",
    "address",
    envvar=VARIABLE,
    metavar="ADDRESS",
    help="run on a Dask cluster, tcp://scheduler:8786, or in four processes of this machine, local:4 "
    "[default: $LOCKSTEP_POOL, or this process]",
)


@contextmanager
def pool_at(address: str, runs: str) -> Iterator[Pool]:
    """Yield a pool that runs jobs on the Dask cluster at `address`. Raise ValueError if it cannot be reached."""
    from experiments.jobs.pool import Pool

    pool = Pool(runs, 1, wall=LONGEST, cpu=int(LONGEST), memory=MOST_MEMORY, dask=address, fresh=math.inf)
    try:
        assert pool.dask
        if pool.dask.trouble:
            raise ValueError(pool.dask.trouble)
        yield pool
    finally:
        pool.close()


def check_writable(root: str) -> None:
    """Raise ValueError if a folder cannot be written to, before any work is done."""
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"runs cannot be stored in {root!r}: {why}; choose another folder with --runs.") from None
