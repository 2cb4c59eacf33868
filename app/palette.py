"""The palette: one meaning per colour, everywhere, and never colour alone.

Hues are those of Okabe & Ito (2008), which stay apart for colour-blind eyes. What a rank is doing is an area, and
also has its own height in the timeline; a run is a line, and also has its own dash and marker. All of them are
readable on the light page and on the dark one, so nothing has to be drawn twice.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.trace import KINDS


class Kind(NamedTuple):
    """How one thing a rank can be doing is drawn: colour, share of the lane's height, hatching, and what it means."""

    colour: str
    height: float
    hatch: str
    meaning: str


DOING: dict[str, Kind] = {
    "compute": Kind("#56B4E9", 1.0, "", "gradients, forward and backward passes"),
    "update": Kind("#009E73", 1.0, "\\", "optimizer and averaging arithmetic"),
    "communicate": Kind("#E69F00", 0.62, ".", "moving a message it needs now"),
    "wait": Kind("#A7B0BA", 0.26, "", "blocked: somebody else is not ready"),
    "idle": Kind("#6B7480", 0.26, "x", "stopped: paused, lost or done"),
}
assert tuple(DOING) == KINDS


class Line(NamedTuple):
    """How one run is drawn: colour, dash of its line, symbol of its points."""

    colour: str
    dash: str
    symbol: str


RUNS: tuple[Line, ...] = (
    Line("#1780C4", "solid", "circle"),
    Line("#D55E00", "dash", "square"),
    Line("#C46A9E", "dot", "diamond"),
    Line("#8C6D31", "dashdot", "triangle-up"),
    Line("#7566C2", "longdash", "cross"),
)
"""Runs on the page, in the order they came; the run that is shown and four that are kept."""

TRAFFIC = ((0.0, "rgba(230,159,0,0.1)"), (1.0, "#E69F00"))
"""Bytes on a link: from none to most, in the colour of communication."""

MUTED = "#87919C"
"""Axis marks and remarks: 3 to 1 or more on both pages."""
