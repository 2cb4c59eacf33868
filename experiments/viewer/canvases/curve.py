"""Curves on a canvas, which keeps the reader's zoom while they grow."""

import numpy as np

from experiments.viewer.column_codec import pack
from experiments.viewer.pictures import Axis, Finish, Picture

DASHES = {"solid": [], "dash": [8, 5], "dot": [2, 4], "dashdot": [8, 4, 2, 4], "longdash": [14, 5]}
LOOK = ("colour", "symbol", "name", "key", "bare", "faint", "width", "ghost", "every", "ended")


def frame(
    picture: Picture,
    description: str,
    of: str = "",
    saved: dict | None = None,
    zoom: tuple[float, float] | None = None,
) -> bytes:
    """Return `picture`, packed as a frame for the canvas of curves. While `of` (the axes and runs) stays the same, so
    does the reader's zoom.

    `saved` has the picture's name and heading as a file (experiments.viewer.saved). The canvas opens with `zoom`, a
    part of its x axis.
    """
    columns: dict[str, np.ndarray] = {}
    lines = []
    for number, one in enumerate(picture.series):
        columns |= {f"x{number}": one.x.astype("f4"), f"y{number}": one.y.astype("f4")}
        look = {name: getattr(one, name) for name in LOOK}
        if one.error is not None:
            columns[f"e{number}"] = one.error.astype("f4")
            look |= {"error": f"e{number}", "band": one.band}
        if one.seconds is not None:
            columns[f"t{number}"] = one.seconds.astype("f4")
            look["seconds"] = f"t{number}"
        lines.append({"x": f"x{number}", "y": f"y{number}", "dash": DASHES[one.dash], **look})
    header = {
        "lines": lines,
        "x": _axis(picture.x),
        "y": _axis(picture.y),
        "height": picture.height,
        "growing": picture.growing,
        "together": picture.together,
        "finish": picture.finish and _finish(picture.finish),
        "description": description,
        "of": of,
        "saved": saved,
        "zoom": zoom,
    }
    return pack(header, columns)


def _finish(finish: Finish) -> dict:
    arrivals = [
        one._asdict() | {"seconds": None if one.seconds != one.seconds else one.seconds} for one in finish.arrivals
    ]
    return finish._asdict() | {"arrivals": arrivals}


def _axis(axis: Axis) -> dict:
    return {**vars(axis), "most": max(axis.most, axis.least + 1e-30)}
