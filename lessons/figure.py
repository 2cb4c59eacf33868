"""A figure: an experiment of the textbook that can be run again, and what it is meant to show.

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

A figure is called with a function `run(**flat values of an experiment) -> Run` and gives rows, dicts of plain values:
what is drawn, printed and claimed comes from them. Each claim is a sentence about the *shape* (who is above whom, where
it bends) with the test that proves it. It takes at most 20 s on two cores. `look` says how the rows are drawn; without,
`experiments.plots.chart.guess` finds out.
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
        """Run the experiments, here and now unless `run` knows better."""
        return self.make(run or run_now)


def figure(question: str, *, source: str, claims: Mapping[str, Callable[[Rows], bool]], look: Look | None = None):
    """Make a function `name(run) -> rows` a Figure; its docstring says what to look at."""

    def made(make: Callable[[Callable[..., Run]], Rows]) -> Figure:
        return Figure(make.__name__, question, source, claims, make, inspect.cleandoc(make.__doc__ or ""), look)

    return made


def run_now(**values: Any) -> Run:
    """The Run of the experiment with these flat values. ValueError if it cannot be."""
    return run_experiment(Experiment.of(values))


def value(rows: Rows, quantity: str, **where: Any) -> Any:
    """The one value of `quantity` in the rows where all of `where` holds. ValueError unless it is one row."""
    found = [row[quantity] for row in rows if all(row[name] == wanted for name, wanted in where.items())]
    if len(found) != 1:
        raise ValueError(f"{len(found)} rows have {where}; expected one.")
    return found[0]


def column(rows: Rows, quantity: str, **where: Any) -> list:
    """The values of `quantity`, row by row, where all of `where` holds."""
    return [row[quantity] for row in rows if all(row[name] == wanted for name, wanted in where.items())]
