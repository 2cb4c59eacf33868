"""Curves of runs as pictures: plain data that the workbench draws on a canvas, and exports with Plotly.

Loss, accuracy and what methods measured, of one run or several in one chart, finished or running. Axes have readable
units; the arrays of a run stay in SI units.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.viewer import curves, palette
from experiments.viewer.curves import Line

HEIGHT = 260  # px of a picture
FAR = 4.0  # losses above this many times the first one leave the axis, since a divergence would hide everything else
EVEN = 0.1  # largest spread of the gaps between points, relative to their mean, that looks even
STRIDES = 6  # largest stride at which the points of a line are marked
ALWAYS = 5.0  # the axis shows every loss up to this, more than twice the loss of guessing among ten classes


@dataclass(frozen=True)
class AnyShown:
    """A run to be shown in pictures, of an experiment or a script.

    It has a name, a colour (an index into palette.RUNS), and the name of its folder. `others` are runs of the same
    experiment with other seeds. Losses and accuracies are then drawn as the mean of all runs, in a band of one standard
    deviation to either side. A `ghost` is the previous run: grey, behind all others. A run of a sweep is coloured by
    `share`, its position between the first value and the last.
    """

    name: str
    run: Run | ScriptRun
    colour: int
    folder: str = ""
    others: tuple[Run, ...] = ()
    ghost: bool = False
    share: float | None = None

    @property
    def line(self) -> palette.LineStyle:
        if self.share is not None:
            return palette.ramp(self.share, self.colour)
        return palette.GHOST if self.ghost else palette.RUNS[self.colour % len(palette.RUNS)]


@dataclass(frozen=True)
class Shown(AnyShown):
    """An experiment's run to be shown in pictures. Only these have curves; runs of scripts have timelines and bars."""

    run: Run

    @property
    def runs(self) -> tuple[Run, ...]:
        """This run and the others that it is averaged with, such as those with other seeds."""
        return self.run, *self.others


@dataclass(frozen=True)
class Series:
    """One line: x and y of one length, in the units of the axes.

    `symbol` marks its points, `bare` omits the line, `faint` puts it into the background, where the pointer ignores it.
    `name` is shown at the pointer, `key` in the legend ("" for no entry). `error` is the uncertainty of values to
    either side: it is shown at the pointer, and drawn if it is a `band`. `seconds` is the time of each point, so that a
    dot on the line can follow the page's clock. A `ghost` belongs to the previous run. Every `every`-th point is
    marked, including the last. `ended` is a word on what ended the run early, or "". `gone` is True for a run that
    diverged: the loss axis shows all of it only if every other line is gone, too.
    """

    x: np.ndarray
    y: np.ndarray
    colour: str
    dash: str = "solid"
    symbol: str = ""
    name: str = ""
    key: str = ""
    bare: bool = False
    faint: bool = False
    width: float = 2.2
    error: np.ndarray | None = None
    band: bool = False
    ghost: bool = False
    seconds: np.ndarray | None = None
    every: int = 1
    ended: str = ""
    gone: bool = False


@dataclass(frozen=True)
class Axis:
    """An axis from `least` to `most`. `name` and `unit` label the pointer's values and, without a `title`, the axis.
    `second` is the length of one unit in seconds if a timeline shares this axis, else 0.
    """

    name: str
    least: float
    most: float
    unit: str = ""
    log: bool = False
    title: str = ""
    second: float = 0.0


class Arrival(NamedTuple):
    """The time in s at which a run reaches the finish, or NaN if it does not."""

    name: str
    colour: str
    seconds: float


class Finish(NamedTuple):
    """The finish of a race: the target loss, the arrivals and the verdict. The verdict is shown from `until` s on.
    `unit` is the length of one unit of the time axis in seconds.
    """

    target: float
    arrivals: list[Arrival]
    verdict: str
    until: float
    unit: float


@dataclass(frozen=True)
class Picture:
    """A picture: series over two axes, and its height in px. A picture that is `growing` marks its current end.

    Pictures of a page with the same `together`, unless it is "", zoom together.
    """

    series: list[Series]
    x: Axis
    y: Axis
    height: int = HEIGHT
    growing: bool = False
    together: str = ""
    finish: Finish | None = None


def unit(axis: str, largest: float) -> tuple[float, str]:
    """Return the unit of an axis, chosen so that labels have few digits: its length in SI units, and its name."""
    if axis == "seconds":
        return next(((scale, name) for scale, name in ((1, "s"), (1e-3, "ms")) if largest >= scale), (1e-6, "µs"))
    if axis == "bytes":
        steps = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
        return next(((scale, name) for scale, name in steps if largest >= scale), (1, "bytes"))
    return 1, ""


def loss(shown: list[Shown], axis: str, log: bool = False, reach: float = 0.0) -> Picture:
    """Return training loss (faint: mini-batches, bold: running mean) and held-out loss (points) of all runs.

    The x axis covers all runs, and at least `reach` in SI units.
    """
    shown = _ghosts_first(shown)
    alone, drawn = _alone(shown), _drawn(shown, axis)
    series, most = [], _farthest(drawn, reach)
    scale, word = unit(axis, most)
    for s, (every, smooth, held) in zip(shown, drawn, strict=True):
        colour, dash, symbol = s.line
        if alone and not s.others and not s.ghost:
            series.append(Series(every.x / scale, every.y, colour, faint=True, width=1))
        (training, held_out), gone = _keys(s, alone), bool(_ended(s))
        series += [
            Series(
                smooth.x / scale, smooth.y, colour, dash, name=_said(s, shown, "training"), key=training,
                error=smooth.error, band=True, seconds=smooth.seconds, ghost=s.ghost, ended=_ended(s),
                gone=gone,
            ),
            Series(
                held.x / scale, held.y, colour, "dot", symbol, _said(s, shown, "held-out"), held_out,
                bare=not alone or s.ghost, width=1, error=held.error, seconds=held.seconds, ghost=s.ghost,
                every=even(held.x), gone=gone,
            ),
        ]  # fmt: skip
    return Picture(series, along(axis, most / scale, word, scale), _up(series, log), together=f"{axis} {word}")


def accuracy(shown: list[Shown], axis: str, reach: float = 0.0) -> Picture:
    """Return the held-out accuracy, in percent, of all runs over `axis`, which covers at least `reach` in SI units."""
    shown = _ghosts_first(shown)
    lines = [_accuracy(s, axis) for s in shown]
    most = _farthest(_drawn(shown, axis), reach)
    scale, word = unit(axis, most)
    series = [
        Series(
            line.x / scale, 100 * line.y, *s.line, _said(s, shown, "accuracy"), error=100 * error,
            band=bool(s.others), seconds=line.seconds, ghost=s.ghost, every=even(line.x),
        )
        for s, (line, error) in zip(shown, lines, strict=True)
    ]  # fmt: skip
    best = max((float(line.y.max(initial=0.0)) for line, _ in lines), default=0.0)
    high = 102 if best > 0.5 else 110 * max(best, 0.01)
    up = Axis("accuracy", 0, high, "%")
    return Picture(series, along(axis, most / scale, word, scale), up, together=f"{axis} {word}")


def growing(series: list[Series], behind: Picture, log: bool = False) -> Picture:
    """Return the picture `behind`, with the lines of a running experiment on top."""
    every = [*behind.series, *series]
    up = _up(every, log) if behind.y.name == "loss" else replace(behind.y, most=102)
    return replace(behind, series=every, y=up, growing=True)


def panel(shown: list[Shown], axis: str, log: bool, most: float, top: float) -> Picture:
    """Return one of several small pictures of the loss with shared axes: x up to `most` in SI units, y up to `top`."""
    scale, word = unit(axis, most)
    series = []
    for s, (_, smooth, held) in zip(shown, _drawn(shown, axis), strict=True):
        gone = bool(_ended(s))
        series += [
            Series(smooth.x / scale, smooth.y, s.line.colour, name="training", width=2, gone=gone),
            Series(
                held.x / scale, held.y, s.line.colour, "dot", s.line.symbol, "held-out", bare=True, width=1, gone=gone
            ),
        ]
    up = _up(series, log) if log else Axis("loss", 0.0, top)
    return Picture(series, along(axis, most / scale, word), up, height=170)


def measurements(shown: list[Shown], quantity: str) -> Picture:
    """Return the picture of `quantity`, which the methods of all runs measured, over steps."""
    series = []
    for s in shown:
        if quantity in s.run.quantities:
            line = curves.measurements(s.run, quantity)
            series.append(Series(line.x, line.y, s.line.colour, s.line.dash, name=_said(s, shown, quantity), width=2))
    most = max((float(one.x[-1]) for one in series if len(one.x)), default=1.0)
    low, high = _span(series)
    least = min((float(np.nanmin(one.y)) for one in series if len(one.y)), default=low)
    if least > high / 2:  # far from 0, an axis from 0 would hide the changes
        low = least - (high - least) / 8
    return Picture(series, along("step", most, ""), Axis(quantity, low, high), height=170)


def reach(shown: list[Shown], axis: str) -> tuple[float, float]:
    """Return the shared limits of all runs' pictures: the largest x in SI units, and the highest loss worth showing."""
    drawn = _drawn(shown, axis)
    calm = [lines for s, lines in zip(shown, drawn, strict=True) if not _ended(s)] or drawn
    tops = [_top(smooth.y, held.y, far=FAR) for _, smooth, held in calm]
    return _farthest(drawn), max((top for _, top in filter(None, tops)), default=1.0) * 1.08


def along(axis: str, most: float, word: str, scale: float = 0.0) -> Axis:
    """Return the x axis of curves; `word` is its unit.

    `scale` is the length of a unit of time in seconds, for an axis that a timeline shares.
    """
    names = {"step": "step", "samples": "samples seen by all workers", "seconds": "time", "bytes": "sent by all ranks"}
    title = "step (mini-batches per worker)" if axis == "step" else ""
    return Axis(names[axis], 0.0, most, word, title=title, second=scale if axis == "seconds" else 0.0)


def even(x: np.ndarray) -> int:
    """Return the smallest stride at which the points of a line, counted from its end, are evenly spaced, or 1 if there
    is none.

    Reports are made at a fixed interval but evaluated at fewer points, which leaves groups with gaps between them.
    """
    for stride in range(1, STRIDES + 1):
        gaps = np.diff(x[::-1][::stride])
        if len(gaps) > 1 and gaps[:-1].std() <= EVEN * abs(gaps[:-1].mean()):  # the gap at the line's start may differ
            return stride
    return 1


def _ended(s: Shown) -> str:
    return "diverged" if s.run.status == "diverged" else ""


def _ghosts_first(shown: list[Shown]) -> list[Shown]:
    """Return the runs in drawing order, with ghosts first, so that ghosts lie below the other runs."""
    return sorted(shown, key=lambda one: not one.ghost)


def _alone(shown: list[Shown]) -> bool:
    """Return True if the picture shows at most one run besides ghosts, so that its legend can name the lines."""
    return sum(not one.ghost for one in shown) <= 1


def _keys(s: Shown, alone: bool) -> tuple[str, str]:
    """Return the entries of a run's two lines in the picture's legend. With several runs, they are empty: the page has
    a legend of runs.
    """
    if not alone:
        return "", ""
    if s.others and not s.ghost:
        return f"training: mean of {len(s.runs)} seeds ± standard deviation", "held-out"
    return (s.name, "") if s.ghost else ("training", "held-out")


def _said(s: Shown, shown: list[Shown], word: str) -> str:
    return word if _alone(shown) and not s.ghost else f"{s.name}, {word}"


def _accuracy(s: Shown, axis: str) -> tuple[Line, np.ndarray]:
    """Return the held-out accuracy and its error: the standard deviation over seeds, or the run's standard error."""
    line = curves.mean([curves.held_out(run, axis, "accuracy") for run in s.runs])
    return line, line.error if s.others and line.error is not None else s.run.standard_error(line.y)


def _drawn(shown: list[Shown], axis: str) -> list[tuple[Line, Line, Line]]:
    """Return (mini-batch losses, their running mean, held-out loss) of each run."""
    drawn, steps = [], curves.window([run for s in shown for run in s.runs])
    for s in shown:
        smooth = [curves.training(run, axis, steps)[1] for run in s.runs]
        held = [curves.held_out(run, axis) for run in s.runs]
        drawn.append((curves.training(s.run, axis)[0], curves.mean(smooth), curves.mean(held)))
    return drawn


def _farthest(drawn: list[tuple[Line, Line, Line]], reach: float = 0.0) -> float:
    """Return the largest x of the runs in SI units, and at least `reach`."""
    ends = [float(line.x[-1]) for _, *lines in drawn for line in lines if len(line.x)]
    return max([reach, *ends]) or 1.0


def _up(series: list[Series], log: bool) -> Axis:
    seen = [one for one in series if not one.gone and not one.faint] or series
    low, high = _decades(seen) if log else _span(seen, FAR)
    return Axis("loss", low, high, log=log)


def _span(series: list[Series], far: float = np.inf) -> tuple[float, float]:
    """Return the limits of a linear axis. It contains 0, and reaches at most `far` times a line's first value."""
    known = list(filter(None, (_top(one.y, far=far) for one in series if not one.faint)))
    low, high = min([0.0, *(low for low, _ in known)]), max((high for _, high in known), default=1.0)
    return (low, high * 1.08) if high > low else (low, low + 1.0)


def _decades(series: list[Series]) -> tuple[float, float]:
    """Return the limits of a logarithmic axis."""
    values = np.concatenate([one.y for one in series if not one.faint] or [np.ones(1)])
    values = values[np.isfinite(values) & (values > 0)]
    return (float(values.min()) / 1.3, float(values.max()) * 1.3) if len(values) else (0.1, 1.0)


def _top(*lines: np.ndarray, far: float = np.inf) -> tuple[float, float] | None:
    """Return the range worth showing, without the peak of a bad start or the last values of a divergence."""
    values = np.concatenate(lines)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    usual = float(np.quantile(np.abs(values), 0.9))
    top = min(8 * usual, far * abs(float(values[0])))
    return float(values.min()), min(float(values.max()), max(top, ALWAYS))
