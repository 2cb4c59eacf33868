"""Shared by commands that run experiments: reading the experiment, Ctrl-C, checking the folder of runs, exit codes."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from experiments.cli import options
from experiments.cli.console import complain
from experiments.specification.experiment import Experiment

EXIT = {"finished": 0, "diverged": 1, "failed": 1, "cancelled": 130}
BEST = "best"  # learning rate at which the experiment's final loss is lowest


def stoppable() -> AbstractContextManager[Callable[[], bool]]:
    """Return a context whose value returns True once Ctrl-C was pressed; a second Ctrl-C interrupts at once."""
    from cluster.real.signals import catch_signals, stop_signals

    return catch_signals(*stop_signals())


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
    """Return the experiments, each at its best learning rate; print these rates and where they come from on stderr."""
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


def check_writable(root: str) -> None:
    """Raise ValueError if a folder cannot be written to, before any work is done."""
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"runs cannot be stored in {root!r}: {why}; choose another folder with --runs.") from None
