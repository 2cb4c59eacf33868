"""Compare two runs of scripts: whether they computed the same numbers, and where their times differ."""

from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cluster.script_summary import WaitFor
from experiments.runs.script_run import ScriptRun
from tracing import sort_rows

BACKWARD = "loss of backward()"
"""The name under which losses are compared if backward() is called on them."""

Values = dict[str, np.ndarray]


class FirstDifference(NamedTuple):
    """The first number in which two runs differ, and the largest relative difference."""

    name: str
    rank: int
    step: int
    values: tuple[float, float]
    apart: float  # here
    most: float  # anywhere


@dataclass(frozen=True)
class NumberComparison:
    """What two runs computed: losses, and values logged or printed, rank by rank.

    compared   how many numbers of each run were compared: for each rank, as many as both runs have
    longer     True if one of the runs has more numbers
    missing    names that only one of the runs has, or has in other steps
    first      where they first differ, or None if they are bitwise equal
    """

    compared: int
    longer: bool
    missing: tuple[str, ...]
    first: FirstDifference | None


def compare_numbers(a: ScriptRun, b: ScriptRun) -> NumberComparison:
    """Compare the numbers that two runs computed."""
    one, other = _values(a), _values(b)
    compared, longer, missing, found = 0, False, [], []
    for name in dict.fromkeys([*one, *other]):
        if name not in one or name not in other:
            missing.append(name)
            continue
        x, y = _common_rows(one[name], other[name])
        if not np.array_equal(x["step"], y["step"]):
            missing.append(name)
            continue
        compared += len(x["value"])
        longer |= len(x["value"]) < max(len(one[name]["value"]), len(other[name]["value"]))
        found += _differences(name, x, y)
    first = min(found, key=lambda one: (one.step, one.rank), default=None)
    most = max((one.most for one in found), default=0.0)
    return NumberComparison(compared, longer, tuple(missing), first and first._replace(most=most))


def _values(run: ScriptRun) -> dict[str, Values]:
    """Return the ranks, steps and values of each loss or logged value, by name. They are sorted by rank, since the
    recorded order of ranks depends on times.
    """
    losses = {"rank": run.losses["rank"], "step": run.losses["step"], "value": run.losses["loss"]}
    tables = {BACKWARD: losses} if len(losses["value"]) else {}
    for number, name in enumerate(run.quantities):
        rows = run.measures["quantity"] == number
        tables[name] = {column: run.measures[column][rows] for column in ("rank", "step", "value")}
    return {name: sort_rows(table, "rank") for name, table in tables.items()}


def _common_rows(a: Values, b: Values) -> tuple[Values, Values]:
    """Return both tables with each rank's first rows only: as many as that rank has in both."""
    ranks = 1 + max(int(values["rank"].max(initial=0)) for values in (a, b))
    counts = [np.bincount(values["rank"], minlength=ranks) for values in (a, b)]
    common = np.minimum(*counts)
    found = []
    for values, count in zip((a, b), counts, strict=True):
        place = np.arange(len(values["rank"])) - (np.cumsum(count) - count)[values["rank"]]
        kept = place < common[values["rank"]]
        found.append({name: column[kept] for name, column in values.items()})
    return found[0], found[1]


def _differences(name: str, a: Values, b: Values) -> list[FirstDifference]:
    """Return a list with the first difference of the values, or [] if they are equal."""
    x, y = np.asarray(a["value"], float), np.asarray(b["value"], float)
    rows = np.flatnonzero(x.view(np.int64) != y.view(np.int64))
    if not len(rows):
        return []
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.abs(x - y) / np.maximum(np.abs(x), np.abs(y))
    first = rows[np.lexsort([a["rank"][rows], a["step"][rows]])[0]]
    place = int(a["rank"][first]), int(a["step"][first])
    most = float(np.nanmax(apart[rows], initial=0.0))
    return [FirstDifference(name, *place, (float(x[first]), float(y[first])), float(apart[first]), most)]


def printed_difference(a: ScriptRun, b: ScriptRun) -> tuple[int, str | None, str | None] | None:
    """Return (rank, line of `a`, line of `b`) of the first printed line that differs, or None if all are the same."""
    for rank in range(max(a.trace.ranks, b.trace.ranks)):
        lines = ([line for other, line in run.printed if other == rank] for run in (a, b))
        for one, other in zip_longest(*lines):
            if one != other:
                return rank, one, other
    return None


def longer_waits(a: ScriptRun, b: ScriptRun) -> list[WaitFor]:
    """Return the waits that are longer in `b` than in `a`, with the extra time summed over ranks, the largest first."""
    before = {(wait.culprit, wait.what, wait.line): wait.seconds for wait in a.summary.waits}
    found = []
    for wait in b.summary.waits:
        seconds = wait.seconds - before.get((wait.culprit, wait.what, wait.line), 0.0)
        if seconds > 0:
            found.append(replace(wait, seconds=seconds))
    return sorted(found, key=lambda wait: -wait.seconds)


def source_difference(a: ScriptRun, b: ScriptRun) -> int | None:
    """Return the first line, counted from 1, in which the two scripts differ, or None if they are the same."""
    lines = (run.experiment.source.splitlines() for run in (a, b))
    return next((number for number, (one, other) in enumerate(zip_longest(*lines), 1) if one != other), None)
