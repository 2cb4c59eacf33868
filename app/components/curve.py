"""The curve of a run under way, drawn frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.charts import HEIGHT
from app.components import canvas
from experiments.codec import pack

DASHES = {"solid": [], "dash": [8, 5], "dot": [2, 4], "dashdot": [8, 4, 2, 4], "longdash": [14, 5]}

_mount = canvas("curve")


@dataclass(frozen=True)
class Series:
    """One line: x and y of one length; `points` marks them, `faint` puts the line in the background."""

    x: np.ndarray
    y: np.ndarray
    colour: str
    dash: str = "solid"
    points: bool = False
    faint: bool = False


def frame(series: list[Series], title: str, most: float, top: float, description: str, height: int = HEIGHT) -> bytes:
    """All that the browser needs: x from 0 to `most`, y from 0 to `top`, in the units of the arrays."""
    columns, lines = {}, []
    for number, one in enumerate(series):
        columns |= {f"x{number}": one.x.astype("f4"), f"y{number}": one.y.astype("f4")}
        look = {"colour": one.colour, "dash": DASHES[one.dash], "points": one.points, "faint": one.faint}
        lines.append({"x": f"x{number}", "y": f"y{number}", **look})
    header = {
        "lines": lines,
        "x": {"title": title, "most": max(most, 1e-30)},
        "y": {"least": 0, "most": max(top, 1e-30)},
        "height": height,
        "description": description,
    }
    return pack(header, columns)


def curve(frame: bytes, key: str):
    """Draw it."""
    return _mount(data=frame, key=key)
