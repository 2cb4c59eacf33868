"""What commands that run experiments share: the progress bar, Ctrl-C, a folder to write to, and exit codes."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from experiments.cli import options
from experiments.cli.console import complain, unheard
from experiments.experiment import Experiment
from experiments.runs.progress import Progress

EXIT = {"finished": 0, "diverged": 1, "failed": 1, "cancelled": 130}
BEST = "best"  # for a learning rate: the one at which the experiment ends lowest
PATIENCE = 0.7  # s before a progress bar appears
EVERY = 5.0  # s between two lines of progress where there is no terminal


class Bar:
    """Progress on stderr: a bar on a terminal, now and then a line elsewhere. Use as a context and call it."""

    def __init__(self, title: str):
        self.title, self._began, self._bar, self._task, self._told = title, time.monotonic(), None, None, -EVERY

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        if self._bar:
            with unheard(sys.stderr):
                self._bar.stop()

    def __call__(self, progress: Progress, title: str | None = None) -> None:
        waited = time.monotonic() - self._began
        if waited < PATIENCE:
            return
        text = f"{title or self.title}  {progress.phase or f'{progress.seconds:.3g} s'}"
        if progress.loss == progress.loss:
            text += f"  loss {progress.loss:.4f}"
        if progress.evaluation:
            text += f"  held-out {progress.evaluation.loss:.4f}"
        with unheard(sys.stderr):
            if sys.stderr.isatty():
                self._on_terminal(text, progress.fraction)
            elif waited - self._told >= EVERY:
                self._told = waited
                print(f"{100 * progress.fraction:3.0f} %  {text}", file=sys.stderr, flush=True)

    def _on_terminal(self, text: str, fraction: float) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Rich

            columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self._bar = Rich(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(text, total=1.0)
            self._bar.start()
        self._bar.update(self._task, completed=fraction, description=text)


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
    except OSError as error:
        raise ValueError(
            f"runs cannot be stored in {root}: {error.strerror}; choose another folder with --runs."
        ) from None
