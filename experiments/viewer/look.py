"""A Look declares in a few words how rows of plain values are drawn.

    Look(x="workers", y=("step",), colour="law", theory=("theory",), log="x")

There is a line, or a group of bars, for each value of `colour` and each column of `y`; columns of `theory` are drawn
with them as grey lines without points. Without a declaration, `guess(rows)` is used. `canvases/figure.py` draws it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal

from experiments.viewer import palette

Rows = list[dict[str, Any]]
Spread = Sequence[dict[str, tuple[Any, Any]]]  # for each row: column -> (lowest, highest), if they differ

HATCHES = ("", "/", "x", "-", ".")  # of bars in the first, second, ... group
HEIGHT = 340  # px


@dataclass(frozen=True)
class Look:
    """How rows are drawn. `colour` names one column, or several joined by "+"; `log` is "", "x", "y" or "xy"."""

    x: str
    y: tuple[str, ...]
    colour: str = ""
    kind: Literal["line", "bar"] = "line"
    theory: tuple[str, ...] = ()
    log: Literal["", "x", "y", "xy"] = ""
    title: str = ""  # of the y axis, if the column's name is not clear enough
    slider: str = ""  # a column with one stop of a slider per value; the axes stay fixed

    def plain(self) -> dict[str, Any]:
        """Return the declaration as JSON values."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Look:
        """Return the Look whose `plain` returned these values."""
        plain: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**plain)


def guess(rows: Rows) -> Look:
    """Return a guess at how to plot rows that have no declared look.

    The shortest prefix of columns that distinguishes all rows is taken as the varied settings, the next numeric column
    as the outcome. If only x varies, further numeric columns with an overlapping range are plotted with it, assuming
    the same unit.
    """
    names = list(rows[0])
    varied = next((names[:n] for n in range(1, len(names)) if _apart(rows, names[:n])), names[:1])
    numbers = [name for name in varied if all(_number(row[name]) for row in rows)]
    x = max(numbers, key=lambda name: len({row[name] for row in rows}), default=varied[0])
    outcomes = [n for n in names if n not in varied and all(_number(row[n]) for row in rows)] or names[-1:]
    alike = [n for n in outcomes[1:] if varied == [x] and _overlap(rows, outcomes[0], n)]
    return Look(x, (outcomes[0], *alike), "+".join(n for n in varied if n != x), "line" if numbers else "bar")


def groups(rows: Rows, look: Look) -> dict[str, Rows]:
    """Return the rows of each line or group of bars, by label: those with equal values in the columns of `apart`.

    These include the slider's column; for one stop of a slider, pass that stop's rows and a look without a slider.
    """
    found: dict[str, Rows] = {}
    for row in rows:
        words = [str(row[n]) if isinstance(row[n], str) else f"{n} {row[n]}" for n in apart(look)]
        found.setdefault(", ".join(words), []).append(row)
    return found


def apart(look: Look) -> list[str]:
    """Return the columns that distinguish lines or groups of bars."""
    return [name for name in (*look.colour.split("+"), look.slider) if name]


def line_style(number: int) -> palette.LineStyle:
    """Return the style of the n-th line; from the sixth on, symbols are open and dashes differ."""
    again, place = divmod(number, len(palette.RUNS))
    colour, dash, symbol = palette.RUNS[place]
    if again:
        dash, symbol = palette.RUNS[(place + again) % len(palette.RUNS)].dash, f"{symbol}-open"
    return palette.LineStyle(colour, dash, symbol)


def hatch(number: int) -> str:
    """Return the pattern of the n-th bar of a group; bars of the same colour get different patterns."""
    return HATCHES[(number + number // len(HATCHES)) % len(HATCHES)]


def _overlap(rows: Rows, one: str, other: str) -> bool:
    """Return True if the ranges of two columns overlap."""
    (a, b), (c, d) = ((min(column), max(column)) for column in ([row[n] for row in rows] for n in (one, other)))
    return a <= d and c <= b


def _apart(rows: Rows, names: list[str]) -> bool:
    return len({tuple(str(row[name]) for name in names) for row in rows}) == len(rows)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
