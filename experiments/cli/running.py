"""What commands that run experiments share: their experiment, Ctrl-C, a folder to write to, and exit codes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from experiments.cli import options
from experiments.cli.console import complain
from experiments.specification.experiment import Experiment

EXIT = {"finished": 0, "diverged": 1, "failed": 1, "cancelled": 130}
BEST = "best"  # for a learning rate: the one at which the experiment ends lowest


def stoppable() -> AbstractContextManager[Callable[[], bool]]:
    """Return a context whose value is True once a user has ended the run; a second Ctrl-C interrupts at once."""
    from cluster.real.signals import noted, stopping

    return noted(*stopping())


def base_experiment(name: str | None, start: str | None, runs: str, given: dict[str, Any]) -> Experiment:
    """Return the experiment that a command line asks for: `start` (a link, file or run), or the defaults, changed.

    With "best" for its learning rate it is at its best one, and stderr says where that comes from.
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
    """Return the experiments, each at its own best learning rate; stderr says which, and where that comes from."""
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
    """Raise ValueError for a folder that cannot be written to: before the work, and not after it."""
    try:
        Path(root).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root):
            pass
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise ValueError(f"runs cannot be stored in {root!r}: {why}; choose another folder with --runs.") from None
