"""Per-rank bars of time and memory, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from experiments.runs.record import Run
from experiments.runs.script_run import ScriptRun
from experiments.viewer import doing, palette
from experiments.viewer.lanes import group_names, groups, lane_names
from experiments.viewer.pictures import AnyShown, unit
from experiments.wording import units
from experiments.wording.rank_names import common_role

HATCHES = {"\\": "45deg", "/": "135deg", "x": "135deg"}
ALONE, GROUPED = 32, 16  # up to ALONE ranks have a bar each; more are drawn as GROUPED groups
STOPS = 4  # labels on the axis, besides 0


@dataclass(frozen=True)
class Part:
    """One part of every bar: its value for each rank, its texts, colour and hatching."""

    name: str
    values: np.ndarray
    words: list[str]
    colour: str
    hatch: str = ""


@dataclass(frozen=True)
class Bars:
    """A bar per rank, stacked from `parts`, on an axis up to `most`. `line` is a labelled mark across all bars.

    `behind` holds the bars of another run with the same number of ranks, drawn small and pale below each bar.
    """

    ranks: list[str]
    parts: list[Part]
    most: float
    title: str
    line: tuple[float, str] | None = None
    behind: Bars | None = None


def shares(shown: Sequence[AnyShown]) -> Bars:
    """Return bars that show how each rank of the first run divides its time, in percent. The bars of a ghost are drawn
    behind them.
    """
    run = shown[0].run
    names, parts = _shares(run)
    behind = None
    if ghosts := [one for one in shown if one.ghost and one.run.trace.ranks == run.trace.ranks]:
        behind = Bars(*_shares(ghosts[0].run), 100.0, ghosts[0].name)
    grouped = run.trace.ranks > ALONE
    role = common_role(lane_names(run))
    more = f"; a bar may be the mean of several {role}s: point at it to see their range" * grouped
    return Bars(names, parts, 100.0, f"share of each {role}'s time, %{more}", behind=behind)


def _shares(run: Run | ScriptRun) -> tuple[list[str], list[Part]]:
    busy = doing.busy(run.trace)
    whole = np.maximum(sum(busy.values()), 1e-30)  # (ranks,), in s
    names = lane_names(run)
    some = _groups(names)
    parts = []
    for kind, seconds in busy.items():
        if not seconds.any():
            continue
        percent = 100 * seconds / whole
        told = [_told(seconds[one], percent[one]) for one in some]
        means = np.array([percent[one].mean() for one in some])
        parts.append(Part(kind, means, told, palette.DRAWN[kind].colour, palette.DRAWN[kind].hatch))
    return group_names(names, some), parts


def _told(seconds: np.ndarray, percent: np.ndarray) -> str:
    """Return a rank's time and share as text. For several ranks, return their means, and the range and median of the
    shares.
    """
    mean = f"{units.seconds(seconds.mean())} ({units.percent(percent.mean() / 100)})"
    if len(seconds) == 1:
        return mean
    low, middle, high = (units.percent(value / 100) for value in np.quantile(percent, (0, 0.5, 1)))
    return f"{mean} on average, {low} at least, {middle} at the median, {high} at most"


def _groups(names: list[str]) -> list[slice]:
    """Return the ranks of each bar: one rank, or neighbours with the same role if there are more than ALONE ranks."""
    return groups(names, ALONE if len(names) <= ALONE else GROUPED)


def memory(shown: Sequence[AnyShown]) -> Bars:
    """Return bars that show the memory of each rank of the first run at its peak, by kind."""
    run = shown[0].run
    held, names = run.peak_memory(), lane_names(run)
    role = common_role(names)
    if len(names) > ALONE:  # a group shows its fullest rank
        fullest = [some.start + int(held[some].sum(axis=1).argmax()) for some in _groups(names)]
        held, names = held[fullest], [names[rank] for rank in fullest]
    there = run.experiment.rank_memory or 0.0
    most = max(float(held.sum(axis=1).max()), there)
    scale, word = unit("bytes", most)
    parts = [
        Part(name, nbytes / scale, [units.size(value) for value in nbytes], *look)
        for (name, look), nbytes in zip(palette.HOLDING.items(), held.T, strict=True)
        if nbytes.any()
    ]
    line = (there / scale, f"memory of a {role}") if there else None
    return Bars(names, parts, most / scale, f"memory held when each {role} is fullest, {word}", line)


def html(bars: Bars, description: str) -> str:
    """Return the bars as HTML, with a legend and an axis; `description` is for screen readers."""
    legend = "".join(f'<span><i style="{_look(part)}"></i>{escape(part.name)}</span>' for part in bars.parts)
    rows = "".join(
        f"<div>{escape(name)}</div><div>{_pieces(bars, row)}{_behind(bars, row)}</div>"
        for row, name in enumerate(bars.ranks)
    )
    if bars.behind:
        legend += f'<span><i class="behind"></i>{escape(bars.behind.title)}</span>'
    step = _step(bars.most / STOPS)
    stops = np.arange(0, bars.most * 1.0001, step)
    axis = "".join(f'<span style="left: {_share(at, bars)}">{units.number(at)}</span>' for at in stops)
    line = ""
    if bars.line:
        at, word = bars.line
        line = f'<div class="line" style="left: {_share(at, bars)}" title="{escape(word)}"></div>'
    return (
        f'<div class="legend">{legend}</div>'
        f'<div class="bars" role="img" aria-label="{escape(description)}">{rows}'
        f'<div></div><div class="axis">{axis}{line}</div></div>'
        f'<div class="bars-title">{escape(bars.title)}</div>'
    )


def _pieces(bars: Bars, row: int) -> str:
    return "".join(_piece(bars, part, row) for part in bars.parts)


def _behind(bars: Bars, row: int) -> str:
    return f'<span class="behind">{_pieces(bars.behind, row)}</span>' if bars.behind else ""


def _piece(bars: Bars, part: Part, row: int) -> str:
    if not part.values[row]:
        return ""
    told = escape(f"{bars.ranks[row]} · {part.name}: {part.words[row]}")
    return f'<i style="width: {_share(part.values[row], bars)}; {_look(part)}" title="{told}"></i>'


def _look(part: Part) -> str:
    if part.hatch not in HATCHES:
        return f"background: {part.colour}"
    stripes = f"repeating-linear-gradient({HATCHES[part.hatch]}, #FFFFFF66 0 1.5px, transparent 1.5px 6px)"
    return f"background: {stripes}, {part.colour}"


def _share(value: float, bars: Bars) -> str:
    return f"{100 * value / bars.most:.3f}%"


def _step(rough: float) -> float:
    """Return the next number that is 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** np.floor(np.log10(rough))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * 0.999)
