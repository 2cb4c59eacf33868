"""A sketch of a run in a line or two of text: the course of its loss, and how its workers spent their time."""

import numpy as np

from experiments.runs.record import Run
from experiments.viewer import doing, palette
from experiments.wording import units

Part = tuple[str, str]  # a text and its style
BARS = "▁▂▃▄▅▆▇█"
BROKEN = "×"  # a loss that is not finite
GLYPHS = {"compute": "█", "compress": "▚", "update": "▓", "communicate": "▒", "wait": "░", "idle": "·"}
"""The character for each activity of a worker, so that a bar can be read without colours."""
assert tuple(GLYPHS) == doing.ORDER
NONE = 0.005  # shares of time below this are not in the legend


def sparkline(values: np.ndarray, columns: int) -> str:
    """Return `values`, (n,), as a sparkline of at most `columns` characters. Each character shows the mean of a part of
    the values.

    >>> sparkline(np.array([4.0, 2.0, 1.0, 0.0, np.nan]), 5), sparkline(np.array([]), 5)
    ('█▅▃▁×', '')
    """
    shares = np.array_split(values, max(1, min(columns, len(values))))
    with np.errstate(over="ignore", invalid="ignore"):
        means = np.array([share.mean() for share in shares if len(share)])
    known = means[np.isfinite(means)]
    if not len(known):
        return BROKEN * len(means)
    low, spread = known.min(), np.ptp(known) or 1.0
    return "".join(
        BARS[round(float((mean - low) / spread) * (len(BARS) - 1))] if np.isfinite(mean) else BROKEN for mean in means
    )


def losses(run: Run, columns: int) -> str:
    """Return the training loss of a run over its steps as a line of `columns` characters."""
    order = np.argsort(run.losses["step"], kind="stable")
    return sparkline(run.losses["loss"][order].astype(float), columns)


def shares(run: Run, columns: int) -> tuple[list[Part], list[tuple[Part, str]]]:
    """Return (a bar of `columns` characters that shows how workers spent their time, its legend). The legend has a
    (character, text) pair for each part.
    """
    share = doing.shares(run)
    ends = np.round(columns * np.cumsum(list(share.values()))).astype(int)
    wide = dict(zip(share, np.diff(ends, prepend=0).tolist(), strict=True))
    bar: list[Part] = [(GLYPHS[kind] * wide[kind], palette.DRAWN[kind].colour) for kind in share if wide[kind]]
    told = [kind for kind in share if share[kind] >= NONE]
    legend = [((GLYPHS[kind], palette.DRAWN[kind].colour), f" {kind} {units.percent(share[kind])}") for kind in told]
    return bar, legend
