"""Recorded losses and other quantities as lines that a chart can draw. Input and output are plain arrays.

An axis is the quantity on x: "step", "samples", "seconds" or "bytes".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from experiments.runs.evaluations import Axes
from experiments.runs.record import Run

AXES = ("step", "samples", "seconds", "bytes")

POINTS = 2000  # of one line, more than the columns of a screen
SMOOTH = 40  # running means cover one SMOOTH-th of the longest run in a chart
FEWEST = 8  # but at most one FEWEST-th of a run


class Line(NamedTuple):
    """A line of at most POINTS points: float32 arrays x (ascending) and y of equal length; `error` is the uncertainty
    of y.

    `seconds` is the time of each point on the run's clock, ascending, or None if unknown.
    """

    x: np.ndarray
    y: np.ndarray
    error: np.ndarray | None = None
    seconds: np.ndarray | None = None


def window(runs: Sequence[Run]) -> float:
    """Return the number of steps per worker over which a chart of these runs averages losses."""
    return max((_steps(run) / SMOOTH for run in runs), default=0.0)


def training(run: Run, axis: str, steps: float | None = None) -> tuple[Line, Line]:
    """Return (the losses of all mini-batches, their running mean over ranks and neighbouring steps), both thinned out.

    The mean is taken over `steps` steps (default: the `window` of this run), but never over a large part of the run.
    """
    losses = run.losses
    x = _along(run, axis)
    order = np.argsort(x, kind="stable")
    x, y, seconds = x[order], losses["loss"][order], losses["seconds"][order]
    level, places = np.unique(x, return_index=True)  # ranks at the same x form one point of the mean

    def mean_at_place(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, places) / np.diff(places, append=len(values)) if len(values) else values

    with np.errstate(invalid="ignore"):
        mean = mean_at_place(y)
    reached = np.maximum.accumulate(mean_at_place(seconds))
    part = min((window([run]) if steps is None else steps) / max(_steps(run), 1), 1 / FEWEST)
    smooth = _every(level, _running(mean, max(1, int(len(mean) * part + 1e-9))), 600, reached)
    return _line(*thin(x, y, POINTS)), _line(*smooth)


def held_out(run: Run, axis: str, quantity: str = "loss") -> Line:
    """Return the held-out "loss" or "accuracy" of the reported models, or an empty line if there is none."""
    tried = run.evaluations
    known = np.isfinite(tried[quantity])
    x = tried_steps(run) if axis == "step" else tried[axis]
    return _line(*_every(x[known].astype(float), tried[quantity][known], POINTS, tried["seconds"][known]))


def mean(lines: Sequence[Line]) -> Line:
    """Return the mean of several lines, at those x of the first line that all lines cover. The error is the standard
    deviation of the lines.

    Its seconds are those of the first line.
    """
    if len(lines) < 2 or not all(len(line.x) for line in lines):
        return lines[0]
    low, high = max(line.x[0] for line in lines), min(line.x[-1] for line in lines)
    inside = (lines[0].x >= low) & (lines[0].x <= high)
    x, seconds = lines[0].x[inside], None if lines[0].seconds is None else lines[0].seconds[inside]
    y = np.array([np.interp(x, line.x, line.y) for line in lines])
    with np.errstate(invalid="ignore"):
        return _line(x, y.mean(axis=0), seconds)._replace(error=y.std(axis=0, ddof=1).astype(np.float32))


def time_to_loss(run: Run, loss: float) -> float:
    """Return the time in s of the first report whose held-out loss is at most `loss`, or NaN if there was none."""
    there = np.flatnonzero(run.evaluations["loss"] <= loss)
    return float(run.evaluations["seconds"][there[0]]) if len(there) else np.nan


def step_time(run: Run) -> float:
    """Return the median time between consecutive mini-batches of a rank, in s, or NaN if no rank had two."""
    order = np.lexsort([run.losses["seconds"], run.losses["rank"]])
    same = np.diff(run.losses["rank"][order]) == 0
    between = np.diff(run.losses["seconds"][order])[same]
    return float(np.median(between)) if len(between) else np.nan


def measurements(run: Run, quantity: str) -> Line:
    """Return the values that the method measured in each step, averaged over ranks."""
    steps, values = run.course(quantity)
    known = np.isfinite(values)
    return _line(*thin(steps[known] + 1.0, values[known], POINTS))


def thin(x: np.ndarray, y: np.ndarray, points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return at most `points` of the points: the lowest and the highest of each group of neighbours, so that no peak is
    lost.
    """
    if len(x) <= points:
        return x, y
    edges = np.linspace(0, len(x), points // 2 + 1).astype(int)
    longest = int(np.diff(edges).max())
    places = np.minimum(
        edges[:-1, None] + np.arange(longest), edges[1:, None] - 1
    )  # one row per cell, padded with its last index
    cells = np.where(np.isfinite(y), y, -np.inf)[places]
    keep = np.unique(edges[:-1] + np.stack([cells.argmin(axis=1), cells.argmax(axis=1)]))
    return x[keep], y[keep]


def _steps(run: Run) -> int:
    """Return the number of steps of the worker with the most steps."""
    return int(run.losses["step"].max(initial=-1)) + 1


def _along(run: Run, axis: str) -> np.ndarray:
    losses, messages = run.losses, run.trace.messages
    if axis == "seconds":
        return losses["seconds"]
    if axis == "step":
        return losses["step"] + 1.0
    axes = Axes(losses, messages)
    if axis == "samples":
        return axes.samples[1:].astype(float)
    return axes.bytes[np.searchsorted(messages["sent"], losses["seconds"], side="right")].astype(float)


def tried_steps(run: Run) -> np.ndarray:
    """Return the steps of a worker at each evaluation, as the training curve counts them: the mean over active workers.

    A worker does not count while it is lost. Updates after the last mini-batch, from gradients that were in flight,
    count as steps of their own; otherwise they would all be at one point.
    """
    steps, seconds, lost = run.evaluations["step"].copy(), run.evaluations["seconds"], run.experiment.crash.by_rank
    losses = run.losses
    if lost and len(losses["rank"]):
        done, there = [], []
        for rank in np.unique(losses["rank"]):
            since, until = lost.get(int(rank), (np.inf, np.inf))
            done.append(np.searchsorted(losses["seconds"][losses["rank"] == rank], seconds, side="right"))
            there.append((seconds < since) | (seconds >= until))
        some = np.any(there, axis=0)
        mean = np.average(done, axis=0, weights=np.where(some, there, 1.0))
        steps = np.maximum.accumulate(mean)
    updates, last = run.applied["seconds"], losses["seconds"].max(initial=0.0)
    if len(updates) and len(steps):
        in_a_step = max(1.0, len(updates) / max(steps[-1], 1.0))
        late = np.searchsorted(np.sort(updates[updates > last]), seconds, side="right")
        steps = steps + np.maximum(0.0, late / in_a_step - 1.0)  # the first one belongs to the last mini-batch
    return steps


def _running(y: np.ndarray, window: int) -> np.ndarray:
    """Return the running mean of y: for each value, the mean of the finite values among up to `window` around it."""
    if len(y) == 0:
        return y
    known = np.isfinite(y)
    total, count = _sums(np.where(known, y, 0.0), window), _sums(known.astype(float), window)
    with np.errstate(invalid="ignore", divide="ignore"):
        return total / count


def _sums(y: np.ndarray, window: int) -> np.ndarray:
    """Return the running sum of y over up to `window` values around each, from sums within blocks of that size.

    A running total would lose all digits after a loss of 1e20.
    """
    before = window // 2
    blocks = -(-(len(y) + window) // window)
    padded = np.zeros((blocks, window))
    padded.flat[before : before + len(y)] = y
    ahead = padded.cumsum(axis=1).ravel()
    behind = padded[:, ::-1].cumsum(axis=1)[:, ::-1].ravel()
    first = np.arange(len(y))
    return ahead[first + window - 1] + np.where(first % window, behind[first], 0.0)


def _every(x: np.ndarray, y: np.ndarray, points: int, seconds: np.ndarray) -> tuple[np.ndarray, ...]:
    keep = np.unique(np.linspace(0, len(x) - 1, min(points, len(x))).round().astype(int)) if len(x) else slice(0)
    return x[keep], y[keep], seconds[keep]


def _line(x: np.ndarray, y: np.ndarray, seconds: np.ndarray | None = None) -> Line:
    known = None if seconds is None else seconds.astype(np.float32)
    return Line(x.astype(np.float32), y.astype(np.float32), None, known)
