"""Figure: an experiment of the textbook that can be run again, with claims about its outcome.

    @figure("Does a gradual warm-up beat a sudden start?", source="Goyal et al., 2017, section 2.2",
            claims={"the gradual warm-up ends lower than the constant one":
                    lambda rows: value(rows, "loss", start="gradual") < value(rows, "loss", start="constant")},
            look=Look("start", ("loss",), kind="bar"))
    def warm_up(run):
        rows = []
        for start in ("none", "constant", "gradual"):
            done = run(algorithm="large_batch", warm_up=start, workers=8, epochs=10)
            rows.append({"start": start, "loss": done.summary["held_out_loss"]})
        return rows

A figure is a function of `run(**flat values of an experiment) -> Run` that returns rows, dicts of plain values, from
which it is drawn, printed and tested. Each claim is a sentence about the *shape* (which curve is higher, where it
bends) with its test. A figure takes at most 20 s on two cores. `look` says how rows are drawn; by default
`experiments.plots.chart.guess` chooses.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.experiment import Experiment
from experiments.plots.chart import Look as Look
from experiments.plots.chart import Rows
from experiments.run import run as run_experiment
from experiments.runs.record import Run


@dataclass(frozen=True)
class Figure:
    """`question` for the reader, `source` in the literature, `claims`: sentence -> whether rows show it."""

    name: str
    question: str
    source: str
    claims: Mapping[str, Callable[[Rows], bool]]
    make: Callable[[Callable[..., Run]], Rows]
    text: str
    look: Look | None = None

    def rows(self, run: Callable[..., Run] | None = None) -> Rows:
        """Run the experiments, by `run` or else in this process, and return the rows."""
        return self.make(run or run_now)


def figure(question: str, *, source: str, claims: Mapping[str, Callable[[Rows], bool]], look: Look | None = None):
    """Turn a function `name(run) -> rows` into a Figure; its docstring says what to look at."""

    def made(make: Callable[[Callable[..., Run]], Rows]) -> Figure:
        return Figure(make.__name__, question, source, claims, make, inspect.cleandoc(make.__doc__ or ""), look)

    return made


def run_now(**values: Any) -> Run:
    """Return the Run of the experiment with these flat values. ValueError if they are invalid."""
    return run_experiment(Experiment.of(values))


def value(rows: Rows, quantity: str, **where: Any) -> Any:
    """Return the value of `quantity` in the one row with all the values of `where`. ValueError unless it is one."""
    found = [row[quantity] for row in rows if all(row[name] == wanted for name, wanted in where.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows have {where}; expected one.")
    return found[0]


def column(rows: Rows, quantity: str, **where: Any) -> list:
    """Return the values of `quantity` in the rows with all the values of `where`."""
    return [row[quantity] for row in rows if all(row[name] == wanted for name, wanted in where.items())]
