"""Recorded runs: golden.json holds the curves, figures and timelines of healthy algorithms and mutants, for one seed.

`lockstep book bugs --record` writes the file. A test runs every mutant under three seeds and compares.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.runs.figures import FIGURES, figure_text
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases import figure, timeline
from experiments.viewer.lanes import lane_names
from experiments.viewer.look import Look, Rows
from experiments.viewer.saved import labels_of_one
from experiments.wording import units
from lessons.bugs.mutant import Mutant, mutants
from lessons.grading import timelines

FILE = Path(__file__).parent / "golden.json"
SIDES = ("healthy", "mutant")
LOSS = "held-out loss"
TOLD = ("held_out_loss", "seconds", "bytes", "memory", "staleness_mean", "share_wait")
SPANS = 12  # spans of a rank that a timeline shows at first
LOGARITHMIC = 30.0  # ratio of the final losses above which they are drawn on a logarithmic axis


@dataclass(frozen=True)
class Pair:
    """What a healthy run and a mutant's run show. Every field has the keys "healthy" and "mutant".

    `values[side]` maps the names of figures, including measured quantities, to numbers; `curves[name][side]` is a list
    of (step, value); `lanes[side]` is the frame of a timeline for the browser.
    """

    values: dict[str, dict[str, float | None]]
    curves: dict[str, dict[str, list[tuple[float, float]]]]
    lanes: dict[str, bytes]

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """The rows to display, each with a name, the healthy run's value and the mutant's value."""
        names = [name for name in self.values["healthy"] if any(self.values[side][name] for side in SIDES)]
        return [(_label(name), *(_said(name, self.values[side][name]) for side in SIDES)) for name in names]

    def rows(self, curve: str) -> Rows:
        """Return a curve as rows of step, run and value. Values that are not finite are left out."""
        return [{"step": x, "run": side, curve: y}
                for side in SIDES for x, y in self.curves[curve][side] if math.isfinite(y)]  # fmt: skip

    def frame(self, curve: str) -> bytes:
        """Return a curve, packed for the browser."""
        rows = self.rows(curve)
        last = [self.curves[curve][side][-1][1] for side in SIDES]
        far = curve == LOSS and min(last) > 0 and max(last) > LOGARITHMIC * min(last)
        look = Look("step", (curve,), "run", log="y" if far else "")
        told = ", ".join(f"{side} {value:.3g}" for side, value in zip(SIDES, last, strict=True))
        return figure.frame(rows, look, [], f"{curve} at the end: {told}.", curve)

    def plain(self) -> dict[str, Any]:
        """Return the pair as JSON values."""
        lanes = {side: base64.b64encode(zlib.compress(frame, 9)).decode() for side, frame in self.lanes.items()}
        return {"values": self.values, "curves": self.curves, "lanes": lanes}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Pair:
        """Return the pair stored in `values`, which `plain` returned."""
        lanes = {side: zlib.decompress(base64.b64decode(text)) for side, text in values["lanes"].items()}
        return cls(values["values"], values["curves"], lanes)


def pair(mutant: Mutant, seed: int = 0) -> Pair:
    """Run the experiment with and without the mutation, and return a Pair of what they show."""
    runs = {"healthy": mutant.healthy(seed), "mutant": mutant.run_mutant(seed)}
    quantities = tuple(name for name in mutant.curves if any(name in run.quantities for run in runs.values()))
    until = max(_beginning(run).seconds() for run in runs.values())
    most = max(len(_beginning(run).spans["start"]) / run.trace.ranks for run in runs.values())
    opening = until * min(1.0, SPANS / most)
    return Pair(
        {side: _values(run, quantities) for side, run in runs.items()},
        {name: {side: _course(run, name, runs) for side, run in runs.items()} for name in (LOSS, *quantities)},
        {side: timeline.trace_frame(_beginning(run), lane_names(run), timeline.describe(run), f"{mutant.name}-{side}",
                               until=until, opening=(0.0, opening), saved=_saved(mutant, side))
         for side, run in runs.items()},
    )  # fmt: skip


def _saved(mutant: Mutant, side: str) -> dict[str, str]:
    """Return the file name and heading for saving a timeline of one side. They do not name the bug, and neither does
    the page.
    """
    words = "healthy" if side == SIDES[0] else "with-the-bug"
    return labels_of_one(Experiment.of(mutant.experiment), f"{words}-timeline")


@cache
def read() -> dict[str, Pair]:
    """Return {name of the mutant: Pair} for all recorded runs."""
    return {name: Pair.of(values) for name, values in json.loads(FILE.read_text("utf-8")).items()}


def write() -> None:
    """Run all mutants and write the golden file."""
    lines = [f"{json.dumps(one.name)}: {json.dumps(pair(one).plain())}" for one in mutants()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    read.cache_clear()


def _values(run: Run, quantities: tuple[str, ...]) -> dict[str, float | None]:
    """Return the numbers of a run's summary that are shown, and the mean of each of `quantities`.

    The mean is 0 if the run did not measure the quantity. None stands for a number that does not exist or is not
    finite.
    """
    measured = {name: float(np.mean(run.course(name)[1])) if name in run.quantities else 0.0 for name in quantities}
    figures = {name: run.summary[name] for name in TOLD} | measured
    return {name: None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
            for name, value in figures.items()}  # fmt: skip


def _course(run: Run, name: str, runs: dict[str, Run]) -> list[tuple[float, float]]:
    """Return a list of (step, value) for the loss or a measured quantity. The values are 0 if the run did not measure
    it.
    """
    if name == LOSS:
        steps, values = run.evaluations["step"], run.evaluations["loss"]
    elif name in run.quantities:
        steps, values = run.course(name)
    else:
        steps = next(other.course(name)[0] for other in runs.values() if name in other.quantities)
        values = np.zeros(len(steps))
    return [(int(x), float(f"{y:.6g}")) for x, y in zip(steps, values, strict=True)]


def _beginning(run: Run):
    return timelines.trace(timelines.plain(run.trace))


def _label(name: str) -> str:
    return FIGURES[name].label if name in FIGURES else name


def _said(name: str, value: float | None) -> str:
    if value is None and (name == "held_out_loss" or name not in FIGURES):
        return "not finite"
    return figure_text(name, value) if name in FIGURES else units.number(value)
