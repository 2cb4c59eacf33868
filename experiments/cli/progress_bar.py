"""Progress of runs: a bar on a terminal or in a notebook; anywhere else, a line from time to time."""

from __future__ import annotations

import math
import sys
import time
from html import escape
from typing import Any

from experiments.cli.console import unheard
from experiments.runs.progress import Progress
from experiments.wording.units import DIVERGED
from kernels import compiling

PATIENCE = 0.7  # s before a progress bar appears
EVERY = 5.0  # s between two lines of progress where there is no terminal
OFTEN = 0.2  # s between two updates of a bar in a notebook


class Bar:
    """A progress bar for runs. Use it as a context manager, and call it with each progress report."""

    def __init__(self, title: str):
        self.title, self._began, self._told, self._text = title, time.monotonic(), -EVERY, title
        self._bar: Any = None  # rich's or a notebook's
        self._task: Any = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        if self._told >= 0 and not self._bar:  # so that the last line says how it ended
            with unheard(sys.stderr):
                print(f"ended  {self._text}  after {time.monotonic() - self._began:.1f} s", file=sys.stderr, flush=True)
        if self._bar:
            with unheard(sys.stderr):
                if self._task is not None:  # leaves nothing behind, even where a printed line cannot be erased
                    self._bar.update(self._task, visible=False)
                self._bar.stop()

    def __call__(self, progress: Progress, title: str | None = None) -> None:
        waited = time.monotonic() - self._began
        if waited < PATIENCE:
            return
        text = f"{title or self.title}  {progress.phase or f'{progress.seconds:.3g} s'}"
        if progress.loss == progress.loss:
            text += f"  loss {_told(progress.loss)}"
        if progress.evaluation:
            text += f"  held-out {_told(progress.evaluation.loss)}"
        with unheard(sys.stderr):
            self._show(text, progress.fraction, waited)

    def count(self, done: int, count: int, share: float = 0.0) -> None:
        """Show which of `count` runs is in progress, the `share` of it that is done (0 to 1), and runs per second."""
        waited = time.monotonic() - self._began
        if waited < PATIENCE or not count:
            return
        pace = f", {done / waited:.2g} runs/s" if done else ""
        with unheard(sys.stderr):
            self._show(f"{self.title}  run {min(done + 1, count)} of {count}{pace}", (done + share) / count, waited)

    def compiling(self) -> None:
        with unheard(sys.stderr):
            self._show(f"{self.title}  {compiling.WORDS}", 0.0, time.monotonic() - self._began)

    def _show(self, text: str, fraction: float, waited: float) -> None:
        if notebook():
            self._bar = self._bar or _NotebookBar()
            if waited - self._told >= OFTEN:
                self._told = waited
                self._bar.show(text, fraction)
        elif sys.stderr.isatty():
            self._on_terminal(text, fraction)
        elif waited - self._told >= EVERY:
            self._told, self._text = waited, text.partition("  ")[0]
            print(f"{_share(fraction)}{text}", file=sys.stderr, flush=True)

    def _on_terminal(self, text: str, fraction: float) -> None:
        if self._bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Rich

            columns = (BarColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
            self._bar = Rich(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(text, total=None)
            self._bar.start()
        total = 1.0 if fraction else None  # a bar without a total moves, since the share is unknown
        self._bar.update(self._task, completed=fraction, total=total, description=f"{_share(fraction)}{text}")


def _share(fraction: float) -> str:
    """Return the fraction that is done as " 40 %  ", or "" while it is unknown."""
    return f"{100 * fraction:3.0f} %  " if fraction else ""


def _told(loss: float) -> str:
    return f"{loss:.4f}" if math.isfinite(loss) else DIVERGED


class _NotebookBar:
    """The browser's own progress bar, redrawn in place. Unlike rich's and tqdm's, it needs no widgets."""

    def __init__(self) -> None:
        from IPython.display import display

        self._shown: Any = display(_Html(""), display_id=True)

    def show(self, text: str, fraction: float) -> None:
        value = f' value="{fraction:.4f}"' if fraction else ""  # without a value it shows that the share is unknown
        self._shown.update(_Html(f"<progress{value}></progress> <code>{escape(text)}</code>", text))

    def stop(self) -> None:
        self._shown.update(_Html(""))


class _Html:
    """A notebook output: HTML, with plain text for frontends without HTML."""

    def __init__(self, html: str, plain: str = ""):
        self.html, self.plain = html, plain

    def __repr__(self) -> str:
        return self.plain

    def _repr_html_(self) -> str:
        return self.html


def notebook() -> bool:
    """Return True inside a notebook kernel: Jupyter's, Colab's or an editor's."""
    if "IPython" not in sys.modules:
        return False
    return hasattr(sys.modules["IPython"].get_ipython(), "kernel")
