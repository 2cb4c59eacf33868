"""Experiments in a notebook or a script: `run` and `sweep` by name, with results that display themselves.

    import lockstep
    r = lockstep.run("easgd", workers=8, network="10GbE")           # r alone in a cell is its summary
    r.show()                                                        # its curves and its timeline
    lockstep.sweep("sync_sgd", workers=[1, 2, 4, 8])                # a table with a row per run; .show() draws them

The names mean the same as on the command line, but nothing is stored. Jupyter, Colab and editors show a page in a frame
of its own, so that the styles and scripts of page and notebook do not interfere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from html import escape
from typing import Any

from experiments.cli import show
from experiments.cli.comparison import describe, heads, split_common_columns
from experiments.cli.progress_bar import Bar
from experiments.cli.running import BEST, at_best, base_experiment, stoppable
from experiments.execution.run import TIMEOUT
from experiments.execution.run import run as run_experiment
from experiments.exports.report import outline
from experiments.runs import compare
from experiments.runs.progress import Progress
from experiments.runs.record import Run
from experiments.runs.scaling import scaling
from experiments.specification.experiment import Experiment
from experiments.study.sweep import grid, run_sweep
from experiments.viewer.pictures import Shown
from experiments.wording import naming
from installation import home
from kernels import compiling

HEIGHT = 760  # px: height of a page until it reports its own


class ShownRun(Run):
    """A Run that displays itself: as text when it is printed, and with `show` as a page."""

    @classmethod
    def of(cls, run: Run) -> ShownRun:
        return cls(**{field.name: getattr(run, field.name) for field in fields(Run)})

    def show(self) -> Page:
        """Return the run's curves and timeline as a page for a notebook."""
        return Page([self], [run_label(self.experiment)])

    def __repr__(self) -> str:
        return show.text(self)


def run(
    what: str | Experiment = "sync_sgd",
    /,
    *,
    worker: Callable[[Any, Any, Any], Any] | None = None,
    timeout: float = TIMEOUT,
    **settings: Any,
) -> ShownRun:
    """Run `what`, an algorithm's name or an experiment, with these settings, and return its record.

    On the simulated cluster, every rank runs `worker(comm, task, settings)`, if given, instead of the algorithm's own
    worker. A rank of a real cluster gives up after it has waited `timeout` seconds for another. An interrupt ends the
    run early and keeps what was recorded. Raise ValueError if the experiment cannot run.
    """
    experiment = _experiment(what, settings)
    if worker is not None and not callable(worker):
        raise ValueError(
            f"worker is {worker!r}, not a function; to set the number of workers, write workers={worker!r}."
        )
    if worker and experiment.cluster != "simulated":
        raise ValueError(
            "worker: an algorithm of your own runs only on the simulated cluster, but cluster is "
            f"{experiment.cluster}; remove cluster."
        )
    with stoppable() as stop, Bar(_named(what)) as bar, compiling.telling(bar.compiling):
        return ShownRun.of(run_experiment(experiment, bar, stop, worker, timeout))


def sweep(
    what: str | Sequence[str] | Experiment = "sync_sgd", /, *, global_batch: int | None = None, **settings: Any
) -> Sweep:
    """Run every combination of the settings that are lists or ranges: `sweep("easgd", workers=[1, 2], period=[1, 10])`.

    Other settings are the same in all runs; `what` may be several algorithms. A `global_batch` is divided among the
    workers, for strong scaling. After an interrupt, the runs done so far are returned. Raise ValueError before anything
    runs if one of the runs cannot run.
    """
    axes = {name: value for name, value in settings.items() if isinstance(value, list | range)}
    fixed = {name: [value] for name, value in settings.items() if name not in axes}
    searched = fixed.get("learning_rate") == [BEST] and fixed.pop("learning_rate")
    if not isinstance(what, str | Experiment):
        axes, what = {"algorithm": list(what), **axes}, what[0]
    for name, values in axes.items():
        if not values:
            raise ValueError(f"{name} has no values to sweep over; give at least one, such as {name}=[...].")
    experiments = grid(_experiment(what, {}), {**axes, **fixed}, global_batch)
    if searched:
        experiments = at_best(experiments, str(home()))
    with stoppable() as stop, Bar("sweep") as bar, compiling.telling(bar.compiling):

        def told(number: int, count: int, progress: Progress | None) -> None:
            bar.count(number, count, progress.fraction if progress else 0.0)

        runs = map(ShownRun.of, run_sweep(experiments, told, stop))
        return Sweep(runs, [name for name, values in axes.items() if len(values) > 1])


class Sweep(list[ShownRun]):
    """The runs of a sweep, as a list that displays itself as a table. `rows` has the values of this table, and `swept`
    names the settings that were varied.
    """

    def __init__(self, runs: Iterable[ShownRun], swept: Sequence[str]):
        super().__init__(runs)
        self.swept = tuple(swept)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row per run: the settings in which the runs differ, status and main figures, in SI units.

        A sweep over workers adds `step_seconds`, `speed_up` and `efficiency`, relative to the fewest workers.
        """
        figures = scaling([[one] for one in self], self.swept)
        rows = compare.compare(self)
        return [{**row, **one._asdict()} for row, one in zip(rows, figures, strict=True)] if figures else rows

    def arrow(self) -> Any:
        """Return the rows as a pyarrow.Table, which pandas, polars and DuckDB accept."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows)

    def show(self) -> Page:
        """Return the curves and timelines of all runs on one page."""
        return Page(self, [run_label(one.experiment, self.swept) for one in self])

    def __repr__(self) -> str:
        return "\n".join(describe(self.rows, self)) if self else "no runs"

    def _repr_html_(self) -> str:
        rows, alike = split_common_columns(self.rows, self) if self else ([{}], "no runs")
        names = [name for name in rows[0] if name != "accuracy_error"]
        head = "".join(f"<th>{escape(show.head(name, heads(self)))}</th>" for name in names)
        cells = zip(*(show.column(rows, name) for name in names), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{escape(alike)}</p>"


class Page:
    """Curves and timelines of runs as a page in a frame, drawn by the same canvases as in the workbench and reports."""

    def __init__(self, runs: Sequence[ShownRun], names: Sequence[str]):
        if not runs:
            raise ValueError(
                "there are no runs to show: the sweep was interrupted before its first run ended; run it again."
            )
        self.runs, self.names = list(runs), list(names)

    @property
    def html(self) -> str:
        """The page itself; it needs no server and no network."""
        last = len(self.runs) - 1
        together = zip(self.names, self.runs, strict=True)
        return outline(
            [Shown(name, one, n, share=n / last if last else None) for n, (name, one) in enumerate(together)]
        )

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.runs))

    def _repr_html_(self) -> str:
        look = f"width: 100%; height: {HEIGHT}px; border: 0"
        return f'<iframe srcdoc="{escape(self.html)}" style="{look}" title="Curves and timelines"></iframe>'


def run_label(e: Experiment, swept: Sequence[str] = ()) -> str:
    """Return the label of a run in pictures, built from the settings that were varied: for example, "EASGD" or "workers
    8".
    """
    values = {**e.model_dump(mode="json"), **e.coding, **e.settings, **e.data}
    words = [f"{name.replace('_', ' ')} {values[name]}" for name in swept if name != "algorithm" and name in values]
    return ", ".join(([naming.method(e)] if "algorithm" in swept or not words else []) + words)


def _experiment(what: str | Experiment, settings: dict[str, Any]) -> Experiment:
    if isinstance(what, str):
        return base_experiment(what, None, str(home()), settings)
    made = what.change(**settings)
    made.refuse_idle(settings)
    return made


def _named(what: str | Experiment) -> str:
    return what if isinstance(what, str) else what.algorithm
