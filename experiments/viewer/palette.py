"""The palette: each colour has one meaning in workbench, exports and terminal, and never carries it alone.

Hues are those of Okabe & Ito (2008), which remain distinct for colour-blind readers. A rank's activity is an area with
its own height in the timeline; a run is a line with its own dash and marker. All are readable on a light and on a dark
page, so nothing needs a second version.

Text, background and borders of a page are its theme's (app/.streamlit/config.toml). canvas.js and the
style sheets have them for pages without a theme, and two style sheets repeat MUTED.
"""

from typing import NamedTuple

from algorithms.parts.pipeline.ops import KINDS as OP_KINDS
from tracing import HELD, KINDS

DARK, LIGHT = "#10202C", "#FFFFFF"  # text on bars, in both themes


class AreaStyle(NamedTuple):
    """The style of one activity of a rank: colour, share of the lane's height, hatching, and meaning.

    `ink` is the colour of its label, "" if it has none.
    """

    colour: str
    height: float
    hatch: str
    meaning: str
    ink: str = ""


DOING: dict[str, AreaStyle] = {
    "compute": AreaStyle("#56B4E9", 1.0, "", "gradients, forward and backward passes", DARK),
    "update": AreaStyle("#009E73", 1.0, "\\", "optimizer and averaging arithmetic", LIGHT),
    "communicate": AreaStyle("#E69F00", 0.62, ".", "moving a message the rank needs now", DARK),
    "wait": AreaStyle("#848E99", 0.26, "", "blocked: another rank is not ready"),
    "idle": AreaStyle("#6B7480", 0.26, "x", "stopped: paused, lost or done"),
}
assert tuple(DOING) == KINDS

DRAWN: dict[str, AreaStyle] = {
    "compute": DOING["compute"],
    "compress": AreaStyle("#4FB890", 0.82, "\\", "compressing what is sent, restoring what arrives", DARK),
    **DOING,
}
"""The style of each activity, with compression separated from other updates: see `experiments.viewer.doing`."""


FORWARD = DOING["compute"].colour
OPS: dict[str, tuple[str, AreaStyle]] = {
    "F": ("forward", AreaStyle(FORWARD, 1.0, "", "forward pass", DARK)),
    "R": ("forward again", AreaStyle(FORWARD, 0.8, "x", "forward once more, from the stored inputs")),
    "B": ("backward", AreaStyle("#0F5E96", 1.0, "", "backward pass, both halves", LIGHT)),
    "I": ("backward of inputs", AreaStyle("#CC79A7", 0.86, "", "the half that the stage before waits for", DARK)),
    "W": ("backward of weights", AreaStyle("#E0BE52", 0.7, "", "the half that no other stage waits for", DARK)),
    "U": ("update", AreaStyle(DOING["update"].colour, 0.5, "\\", "update of the weights", LIGHT)),
}
"""The name and style of each kind of op in a schedule."""
assert tuple(OPS) == tuple(OP_KINDS)

OTHER = AreaStyle("#9DD2F2", 1.0, "/", "neither forward nor backward, such as the loss", DARK)
"""The style of computation other than forward and backward passes, if these have their own styles."""

IDLE = AreaStyle("#6B7480", 0.16, "", "nothing to do, or waiting: the bubble")
SHADES = (0.0, 0.32, 0.55, 0.75)  # share of white in the colours of a rank's first, second, ... stage


def op(kind: str, shade: int) -> AreaStyle:
    """Return the style of an op on the stage with this shade; only a rank's first stage is in the legend."""
    look = OPS[kind][1]
    if shade == 0:
        return look
    return look._replace(colour=_mixed(look.colour, LIGHT, SHADES[shade]), meaning="", ink=DARK if look.ink else "")


def _mixed(one: str, other: str, share: float) -> str:
    """Return a mix of two colours; `share` is the share of `other`."""
    pairs = [(int(one[n : n + 2], 16), int(other[n : n + 2], 16)) for n in (1, 3, 5)]
    return "#" + "".join(f"{round(a + share * (b - a)):02X}" for a, b in pairs)


class LineStyle(NamedTuple):
    """The style of a run: colour, dash of its line, symbol of its points."""

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
"""The styles of the runs on a page, in order: the current run and four pinned ones."""

MARKS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "cross": "✚"}
"""The characters for the marks of runs in text, by the symbol of the run's line."""

RAMP = ("#9A5BD0", "#1780C4", "#0E8F7E")
"""Colours of the runs of a sweep, from its first value to its last."""


def ramp(share: float, number: int) -> LineStyle:
    """Return the line style of run `number` in a sweep: coloured by `share`, 0 to 1; dashes tell neighbours apart."""
    at = min(max(share, 0.0), 1.0) * (len(RAMP) - 1)
    low = min(int(at), len(RAMP) - 2)
    return RUNS[number % len(RUNS)]._replace(colour=_mixed(RAMP[low], RAMP[low + 1], at - low))


GHOST = LineStyle("#87919C", "solid", "circle")
"""The style of the previous run, which is drawn behind the current one: grey, which no other run has."""

HOLDING: dict[str, tuple[str, str]] = {
    "parameters": ("#14635C", ""),
    "gradients": ("#3E9189", "/"),
    "optimizer state": ("#74B9B1", "x"),
    "activations": ("#A9D8D1", ""),
    "buffers": ("#D9C8A9", "."),
}
"""The colour and hatching of each kind of memory, from permanent to temporary."""
assert tuple(HOLDING) == HELD

TRAFFIC = ((0.0, "#FCEFD2"), (1.0, DOING["communicate"].colour))
"""The colours for the number of bytes on a link, from none to most, with dark text on both. They derive from the colour
of communication.
"""

HEAT = ((0.0, "#E8EEF4"), (1.0, "#5B9BD1"))
"""The colours of a figure on a map of two settings, from least to most, with dark text on both."""

RANK = "#4A5A6A"
"""The colour of a rank in a graph, with white text. Its contrast with a light and a dark page is at least 2 to 1."""

MUTED = "#87919C"
"""The colour of lines and marks in the background. Its contrast with a light and a dark page is at least 3 to 1."""

QUIET = 0.7
"""Fraction of the text colour mixed into the page colour for small print on canvases; contrast is at least 4.5 to 1."""

FLAG = "#C4441C"
"""The colour of flags for events on a timeline, with white text."""

WORKERS = ("#C2453D", "#4F6BC0", "#857230", "#B34A94", "#7A5BD0", "#A0522D")
"""The colours of workers drawn as dots, with white numbers, so that several workers may share a colour."""

CLASSES = ("#CC6677", "#5B7FC7", "#CDB84B", "#882255", "#44AA99", "#999933", "#AA66BB", "#8A7F78")
"""The colours of classes of data, as areas and as points. Points of a class also share a shape."""

CANVAS = {
    "light": LIGHT,
    "muted": MUTED,
    "quiet": QUIET,
    "flag": FLAG,
    "memory": HOLDING["gradients"][0],
    "learned": {"right": RUNS[0].colour, "loss": RUNS[1].colour},
}
"""Colours that canvases use whatever they show; "right" is for the accuracy. The frame brings all other colours."""
