"""Compare a predicted run with a measured one: where they first differ, and by how much overall.

Both are divided by step and kind of span, in seconds of all ranks together. They first differ in the first step in
which the time of a kind is off by more than a tenth; of several kinds, the one that differs most in seconds counts.
Differences that are small compared with their step are ignored: twice a microsecond of waiting is irrelevant. Spans
before the first step and those of servers, which take no steps, are only in the totals.
"""

from typing import NamedTuple

import numpy as np

from tracing import KINDS, Trace

APART = 0.1  # share of the longer of the two: a larger difference counts
HEARD = 0.01  # share of the longer of the two steps: a smaller difference is ignored


class Total(NamedTuple):
    """The time in s that all ranks together spent on one kind of span. `ratio` is measured / predicted, NaN if 0 was
    predicted.
    """

    kind: str
    predicted: float
    measured: float

    @property
    def ratio(self) -> float:
        return self.measured / self.predicted if self.predicted else float("nan")


class Parting(NamedTuple):
    """The first step, counted from 0, in which the runs differ, and the kind of span that differs there.

    `predicted` and `measured` are its times in s, over all ranks. `steps` is the number of the `compared` steps in
    which that kind differs as much.
    """

    step: int
    kind: str
    predicted: float
    measured: float
    steps: int
    compared: int


def totals(predicted: Trace, measured: Trace) -> list[Total]:
    """Return the total time of every kind of span that either run has, in s, over all ranks and the whole run."""
    sides = predicted.busy().sum(axis=0), measured.busy().sum(axis=0)
    rows = (Total(kind, float(p), float(m)) for kind, p, m in zip(KINDS, *sides, strict=True))
    return [row for row in rows if row.predicted or row.measured]


def parting(predicted: Trace, measured: Trace) -> Parting | None:
    """Return where the runs first differ by more than APART, or None if they agree in all steps that both runs took."""
    steps = min(_steps(predicted), _steps(measured))
    p, m = _seconds(predicted, steps), _seconds(measured, steps)
    gap, longer = np.abs(m - p), np.maximum(p, m)
    whole = np.maximum(p.sum(axis=1), m.sum(axis=1))
    apart = (gap > APART * longer) & (gap > HEARD * whole[:, None])
    if not apart.any():
        return None
    step = int(apart.any(axis=1).argmax())
    kind = int(np.where(apart[step], gap[step], -1).argmax())
    many = int(apart[:, kind].sum())
    return Parting(step, KINDS[kind], float(p[step, kind]), float(m[step, kind]), many, steps)


def _steps(trace: Trace) -> int:
    return int(trace.spans["step"].max(initial=-1)) + 1


def _seconds(trace: Trace, steps: int) -> np.ndarray:
    """Return the time in s that all ranks together spent, by step and kind: (steps, len(KINDS))."""
    spans = trace.spans
    taken = (spans["step"] >= 0) & (spans["step"] < steps)
    table = np.zeros((steps, len(KINDS)))
    np.add.at(table, (spans["step"][taken], spans["kind"][taken]), (spans["end"] - spans["start"])[taken])
    return table
