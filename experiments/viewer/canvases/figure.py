"""A figure of the textbook on the canvas of curves: lines in bands, bars with whiskers, theory as grey lines, a slider.

Colours, dashes and symbols are those of `experiments.viewer.look`.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.viewer import palette
from experiments.viewer.canvases.curve import DASHES
from experiments.viewer.column_codec import pack
from experiments.viewer.look import HEIGHT, Look, Rows, Spread, groups, guess, hatch, line_style

THEORIES = ("dot", "dashdot", "longdash")


def frame(rows: Rows, look: Look | None, spread: Spread, description: str, of: str = "") -> bytes:
    """Return a figure of `rows`, packed as a frame for the canvas of curves. While `of` stays the same, so does the
    reader's zoom.

    Axes cover the rows of all stops of a slider. Values that are not finite leave a gap.
    """
    look = look or guess(rows)
    limits = {id(row): limit for row, limit in zip(rows, spread, strict=False)}
    names = list(dict.fromkeys(row[look.x] for row in rows)) if _named(rows, look) else []
    stops = list(dict.fromkeys(row[look.slider] for row in rows)) if look.slider else [None]
    columns: dict[str, np.ndarray] = {}
    lines: list[dict[str, Any]] = []

    def add(some: Rows, column: str, ends: bool, **line: Any) -> None:
        number = len(lines)
        values = [[limits.get(id(row), {}).get(column, (row[column],) * 2)[end] for row in some] for end in (0, 1)]
        line |= {"x": f"x{number}", "y": f"y{number}", "width": 2, "bare": False, "faint": False, **line}
        columns[line["x"]] = _floats([names.index(row[look.x]) if names else row[look.x] for row in some])
        columns[line["y"]] = _floats([row[column] for row in some])
        if ends and values[0] != values[1]:
            line |= {"low": f"l{number}", "high": f"h{number}", "band": True}
            columns[line["low"]], columns[line["high"]] = map(_floats, values)
        lines.append(line)

    for stop, value in enumerate(stops):
        here = [row for row in rows if not look.slider or row[look.slider] == value]
        at = {"stop": stop} if look.slider else {}
        together = groups(here, replace(look, slider=""))
        several = [(column, name, some) for column in look.y for name, some in together.items()]
        for number, (column, name, some) in enumerate(several):
            label = ", ".join(filter(None, (name, column if len(look.y) > 1 or not name else "")))
            key = label if len(several) > 1 or look.theory else ""
            colour, dash, symbol = line_style(number)
            if look.kind == "bar":
                style: dict[str, Any] = {"bar": [number, len(several)], "hatch": hatch(number), "dash": []}
            else:
                shape = symbol.removesuffix("-open")
                solid = shape == symbol != "cross"
                style = {"dash": DASHES["solid" if look.theory else dash], "symbol": shape, "solid": solid}
            add(some, column, True, colour=colour, name=label, key=key, **style, **at)
        for column, dash in zip(look.theory, THEORIES, strict=False):
            paths = [[(row[look.x], row[column]) for row in some] for some in together.values()]
            alike = all(path == paths[0] for path in paths)
            for number, some in enumerate(list(together.values())[: 1 if alike else None]):
                add(
                    some, column, False, colour=palette.MUTED, name=column, key="" if number else column,
                    dash=DASHES[dash], symbol="", **at,
                )  # fmt: skip
    header = {
        "lines": lines,
        "x": _axis(look.x, "x", lines, columns, look, names),
        "y": _axis(look.title or ", ".join(look.y), "y", lines, columns, look, []),
        "height": HEIGHT,
        "growing": False,
        "description": description,
        "of": of,
    }
    if look.slider:
        header["stops"] = {"name": look.slider, "values": [_said(value) for value in stops]}
    return pack(header, columns)


def _named(rows: Rows, look: Look) -> bool:
    """Return True if the values along x are names, as for bars, and not numbers."""
    return look.kind == "bar" or any(isinstance(row[look.x], str) for row in rows)


def _floats(values: list) -> np.ndarray:
    column = np.array(values, float)
    return np.where(np.isfinite(column), column, np.nan).astype("f4")


def _axis(name: str, which: str, lines: list, columns: dict, look: Look, names: list) -> dict[str, Any]:
    """Return an axis that covers the columns of all lines, with some room at its ends."""
    axis = {"name": name, "unit": "", "told": True, "log": which in look.log and not names}
    if names:
        return {**axis, "labels": [_said(value) for value in names], "least": -0.5, "most": len(names) - 0.5}
    used = [line[part] for line in lines for part in ((which,) if which == "x" else ("y", "low", "high"))
            if part in line]  # fmt: skip
    values = np.concatenate([columns[column] for column in used]).astype(float)
    values = values[np.isfinite(values) & ((values > 0) | (not axis["log"]))]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if axis["log"]:
        if which == "x":
            axis["ticks"] = sorted({float(v) for v in values})
        room = max((high / low) ** 0.04, 1.05)
        return {**axis, "least": low / room, "most": high * room}
    if which == "y":
        low, high = min(low, 0.0), max(high, 0.0)
        room = 0.06 * ((high - low) or 1.0)
        return {**axis, "least": low - room * (low < 0), "most": high + room * (high > 0 or low == high)}
    room = 0.03 * ((high - low) or 1.0)
    return {**axis, "least": low - room, "most": high + room}


def _said(value: Any) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:g}"
    return str(value)
