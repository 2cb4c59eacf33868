"""The palette: one meaning per colour in workbench, exports and terminal, and never colour alone.

Hues are those of Okabe & Ito (2008), which stay apart for colour-blind eyes. What a rank is doing is an area, and
also has its own height in the timeline; a run is a line, and also has its own dash and marker. All of them are
readable on a light page and on a dark one, so nothing has to be drawn twice.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.parts.pipeline.ops import KINDS as OP_KINDS
from tracing import HELD, KINDS

DARK, LIGHT = "#10202C", "#FFFFFF"  # words on bars, in both themes


class AreaStyle(NamedTuple):
    """How one thing a rank can be doing is drawn: colour, share of the lane's height, hatching, and what it means.

    `ink` is the colour of the words on it, "" if there are none.
    """

    colour: str
    height: float
    hatch: str
    meaning: str
    ink: str = ""


DOING: dict[str, AreaStyle] = {
    "compute": AreaStyle("#56B4E9", 1.0, "", "gradients, forward and backward passes", DARK),
    "update": AreaStyle("#009E73", 1.0, "\\", "optimizer and averaging arithmetic", LIGHT),
    "communicate": AreaStyle("#E69F00", 0.62, ".", "moving a message it needs now", DARK),
    "wait": AreaStyle("#A7B0BA", 0.26, "", "blocked: another rank is not ready"),
    "idle": AreaStyle("#6B7480", 0.26, "x", "stopped: paused, lost or done"),
}
assert tuple(DOING) == KINDS


FORWARD = DOING["compute"].colour
OPS: dict[str, tuple[str, AreaStyle]] = {
    "F": ("forward", AreaStyle(FORWARD, 1.0, "", "forward pass", DARK)),
    "R": ("forward again", AreaStyle(FORWARD, 0.8, "x", "forward once more, from the stored inputs")),
    "B": ("backward", AreaStyle("#0F5E96", 1.0, "", "backward pass, both halves", LIGHT)),
    "I": ("backward of inputs", AreaStyle("#CC79A7", 0.86, "", "the half that the stage before waits for", DARK)),
    "W": ("backward of weights", AreaStyle("#E0BE52", 0.7, "", "the half that no other stage waits for", DARK)),
    "U": ("update", AreaStyle(DOING["update"].colour, 0.5, "\\", "update of the weights", LIGHT)),
}
"""What a rank does in a schedule: its name, and how it is drawn."""
assert tuple(OPS) == tuple(OP_KINDS)

OTHER = AreaStyle("#9DD2F2", 1.0, "/", "neither: the loss, a guess, a lesson", DARK)
"""Computing other than forward and backward passes, where those have their own styles."""

IDLE = AreaStyle("#6B7480", 0.16, "", "nothing to do, or waiting: the bubble")
SHADES = (0.0, 0.32, 0.55, 0.75)  # of white in the colours of a rank's first, second, ... stage


def op(kind: str, shade: int) -> AreaStyle:
    """Return the style of an op on the stage of this shade; only that on a rank's first stage is in the legend."""
    look, white = OPS[kind][1], SHADES[shade]
    parts = [int(look.colour[n : n + 2], 16) for n in (1, 3, 5)]
    colour = "#" + "".join(f"{round(part + white * (255 - part)):02X}" for part in parts)
    if shade == 0:
        return look
    return look._replace(colour=colour, meaning="", ink=DARK if look.ink else "")


class LineStyle(NamedTuple):
    """How one run is drawn: colour, dash of its line, symbol of its points."""

    colour: str
    dash: str
    symbol: str


RUNS: tuple[LineStyle, ...] = (
    LineStyle("#1780C4", "solid", "circle"),
    LineStyle("#D55E00", "dash", "square"),
    LineStyle("#C46A9E", "dot", "diamond"),
    LineStyle("#8C6D31", "dashdot", "triangle-up"),
    LineStyle("#7566C2", "longdash", "cross"),
)
"""Runs on the page, in the order they came; the run that is shown and four that are kept."""

MARKS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚"}
"""A run's mark as a letter, by the symbol of its line."""

RAMP = ("#9A5BD0", "#1780C4", "#0E8F7E")
"""Runs of a sweep, from its first value to its last."""


def ramp(share: float, number: int) -> LineStyle:
    """Return how the run of this number is drawn whose place in a sweep is `share`, 0 to 1; dashes tell them apart."""
    at = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    pairs = [(int(RAMP[low][n : n + 2], 16), int(RAMP[low + 1][n : n + 2], 16)) for n in (1, 3, 5)]
    colour = "#" + "".join(f"{round(a + (at - low) * (b - a)):02X}" for a, b in pairs)
    _, dash, symbol = RUNS[number % len(RUNS)]
    return LineStyle(colour, dash, symbol)


GHOST = LineStyle("#87919C", "solid", "circle")
"""The run before, behind the one that took its place: grey, which no run is."""

HOLDING: dict[str, tuple[str, str]] = {
    "parameters": ("#14635C", ""),
    "gradients": ("#3E9189", "/"),
    "optimizer state": ("#74B9B1", "x"),
    "activations": ("#A9D8D1", ""),
    "buffers": ("#D9C8A9", "."),
}
"""What memory is held for: colour, from what stays to what comes and goes, and hatching."""
assert tuple(HOLDING) == HELD

TRAFFIC = ((0.0, "rgba(230,159,0,0.1)"), (1.0, "#E69F00"))
"""Bytes on a link: from none to most, in the colour of communication."""

HEAT = ((0.0, "#E8EEF4"), (1.0, "#5B9BD1"))
"""A figure on a map of two settings: from least to most, with dark words on both."""

RANK = "#4A5A6A"
"""A rank in a graph: white words on it, and 2 to 1 or more with both pages."""

MUTED = "#87919C"
"""Axis marks and remarks: 3 to 1 or more on both pages."""

WORKERS = ("#C2453D", "#4F6BC0", "#857230", "#B34A94", "#7A5BD0", "#A0522D")
"""Workers where each of them is a dot: white numbers on it, so that more workers may share these colours."""

CLASSES = ("#CC6677", "#5B7FC7", "#CDB84B", "#882255", "#44AA99", "#999933", "#AA66BB", "#8A7F78")
"""Classes of data, as areas and as points; a point has a shape of its class, too."""
