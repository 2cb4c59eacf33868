"""Chart: rows of plain values as a Plotly figure, by a declaration of a few words.

    Look(x="workers", y=("step",), colour="law", theory=("theory",), log="x")

A line, or a group of bars, for each value of `colour` and each column of `y`; columns of `theory` are drawn beside
them as grey lines without points. Without a declaration there is `guess(rows)`. Where rows are means, their lowest and
highest values (`Spread`) are drawn as a band around the line, or as a whisker on the bar.
"""

from __future__ import annotations

import csv
import math
from dataclasses import asdict, dataclass
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import Any, Literal

from experiments.viewer import palette

Rows = list[dict[str, Any]]
Spread = list[dict[str, tuple[Any, Any]]]  # for each row: column -> (lowest, highest), where they differ

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
    title: str = ""  # of the y axis, where the column's own name says too little
    slider: str = ""  # a column: a stop of a slider for each of its values, on axes that stay; drawn by a canvas only

    def plain(self) -> dict[str, Any]:
        """Return the same as JSON has it."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Look:
        """Build one from what `plain` returned."""
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def guess(rows: Rows) -> Look:
    """Return the look of rows that declare none.

    The first columns that tell the rows apart are taken as varied, and the next number as the outcome. Where rows
    differ in x alone, further numbers whose ranges overlap with its own are drawn beside it: they have its unit.
    """
    names = list(rows[0])
    varied = next((names[:n] for n in range(1, len(names)) if _apart(rows, names[:n])), names[:1])
    numbers = [name for name in varied if all(_number(row[name]) for row in rows)]
    x = max(numbers, key=lambda name: len({row[name] for row in rows}), default=varied[0])
    outcomes = [n for n in names if n not in varied and all(_number(row[n]) for row in rows)] or names[-1:]
    alike = [n for n in outcomes[1:] if varied == [x] and _overlap(rows, outcomes[0], n)]
    return Look(x, (outcomes[0], *alike), "+".join(n for n in varied if n != x), "line" if numbers else "bar")


def chart(rows: Rows, look: Look | None = None, spread: Spread = ()):
    """Return the figure; it carries no theme. Infinite values leave a gap."""
    import plotly.graph_objects as go

    look = look or guess(rows)
    figure, together = go.Figure(), groups(rows, look)
    limits = {id(row): limit for row, limit in zip(rows, spread, strict=False)}
    for number, (name, column, some) in enumerate((g, c, s) for c in look.y for g, s in together.items()):
        colour, dash, symbol = line_style(number)
        label = ", ".join(filter(None, (name, column if len(look.y) > 1 or not name else "")))
        x, y = _across(some, look), [_finite(row[column]) for row in some]
        ends = [limits.get(id(row), {}).get(column, (row[column], row[column])) for row in some]
        low, high = zip(*ends, strict=True)
        if look.kind == "bar":
            pattern = {
                "shape": hatch(number),
                "size": 6,
                "fgcolor": "rgba(255,255,255,0.6)",
                "fillmode": "overlay",
            }
            figure.add_bar(
                x=x, y=y, name=label, marker={"color": colour, "pattern": pattern}, error_y=_whisker(y, low, high)
            )
        else:
            figure.add_scatter(
                x=x, y=y, name=label, mode="lines+markers", marker={"symbol": symbol, "size": 8, "color": colour},
                line={"color": colour, "dash": "solid" if look.theory else dash, "width": 2}, legendgroup=label,
            )  # fmt: skip
            _add_band(figure, x, low, high, colour, label)
    _add_theory(figure, together, look)
    figure.update_layout(
        height=HEIGHT, margin={"l": 10, "r": 10, "t": 26, "b": 10}, barmode="group", bargap=0.25,
        showlegend=sum(trace.showlegend is not False for trace in figure.data) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
    )  # fmt: skip
    # A bar stands where its words stand, also where they read as numbers.
    scale = "category" if look.kind == "bar" else "log" if "x" in look.log else None
    figure.update_xaxes(title_text=look.x, type=scale, zeroline=False)
    figure.update_yaxes(title_text=look.title or ", ".join(look.y), zeroline=False)
    if "x" in look.log:
        ticks = _ticks(sorted({row[look.x] for row in rows}))
        figure.update_xaxes(tickvals=ticks, ticktext=[_short(tick) for tick in ticks])
    if "y" in look.log:
        heights = [abs(row[column]) for row in rows for column in look.y if _finite(row[column])]
        decades = math.log10(max(heights, default=1) / min(heights, default=1))
        figure.update_yaxes(type="log", dtick=max(1, math.ceil(decades / 8)), exponentformat="power")
        if heights and 0 < max(heights) < 1000 * min(heights):
            ticks = _round_ticks(min(heights), max(heights), (1, 2, 5))
            figure.update_yaxes(tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def _add_band(figure: Any, x: list, low: tuple, high: tuple, colour: str, group: str) -> None:
    """Add the area between lowest and highest values, where both are finite; nothing if they are equal."""
    ends = [(place, a, b) for place, a, b in zip(x, low, high, strict=True) if None not in (_finite(a), _finite(b))]
    if all(a == b for _, a, b in ends):
        return
    there, below, above = zip(*ends, strict=True)
    figure.add_scatter(
        x=[*there, *there[::-1]], y=[*above, *below[::-1]], fill="toself", mode="none", fillcolor=colour, opacity=0.18,
        hoverinfo="skip", showlegend=False, legendgroup=group, name=f"{group}, range",
    )  # fmt: skip


def _whisker(y: list, low: tuple, high: tuple) -> dict[str, Any] | None:
    """Return the error bars from lowest to highest; None if they are equal."""
    if low == high:
        return None
    up, down = ([_finite(abs(end - (mid or 0))) for mid, end in zip(y, ends, strict=True)] for ends in (high, low))
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 4}


def _add_theory(figure: Any, groups: dict[str, Rows], look: Look) -> None:
    """Add grey lines without points, in the legend once; one line where they are the same for all groups."""
    for theory, dash in zip(look.theory, ("dot", "dashdot", "longdash"), strict=False):
        lines = [(_across(some, look), [_finite(row[theory]) for row in some]) for some in groups.values()]
        for number, (x, y) in enumerate(lines[:1] if all(line == lines[0] for line in lines) else lines):
            figure.add_scatter(
                x=x, y=y, name=theory, legendgroup=theory, mode="lines", showlegend=not number,
                line={"color": palette.MUTED, "dash": dash, "width": 1.8},
            )  # fmt: skip


def page(title: str, charts: list[tuple[str, str, Any]]) -> str:
    """Return one page of HTML that needs no other file: (heading, text, figure) one after the other."""
    import html

    from plotly.io import to_html

    parts = []
    for number, (heading, text, figure) in enumerate(charts):
        figure.update_layout(template="plotly_white")
        drawn = to_html(figure, full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        parts.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n{drawn}")
    return _PAGE.format(title=html.escape(title), parts="\n".join(parts))


def write_rows(rows: Rows, path: Path) -> Path:
    """Write the rows as CSV with a header to `path`, and return it. OSError if that is impossible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def groups(rows: Rows, look: Look) -> dict[str, Rows]:
    """Return the rows by what tells them apart besides x, in the order they came.

    Stops of a slider are told apart as colours are where nothing can slide.
    """
    found: dict[str, Rows] = {}
    for row in rows:
        words = [str(row[n]) if isinstance(row[n], str) else f"{n} {row[n]}" for n in apart(look)]
        found.setdefault(", ".join(words), []).append(row)
    return found


def apart(look: Look) -> list[str]:
    """Return the columns that tell lines or groups of bars apart."""
    return [name for name in (*look.colour.split("+"), look.slider) if name]


def line_style(number: int) -> palette.LineStyle:
    """Return how the n-th line is drawn; from the sixth on symbols are open and dashes differ."""
    again, place = divmod(number, len(palette.RUNS))
    colour, dash, symbol = palette.RUNS[place]
    if again:
        dash, symbol = palette.RUNS[(place + again) % len(palette.RUNS)].dash, f"{symbol}-open"
    return palette.LineStyle(colour, dash, symbol)


def hatch(number: int) -> str:
    """Return the pattern of the n-th bar of a group; where colours come again it is another."""
    return HATCHES[(number + number // len(HATCHES)) % len(HATCHES)]


def _ticks(places: list[float]) -> list[float]:
    """Return where a logarithmic axis has words: at these places if they are short and apart, else at round numbers."""
    low, high = places[0], places[-1]
    gap = min((math.log(b / a) for a, b in pairwise(places)), default=1)
    if len(places) < 2 or (gap > 0.06 * math.log(high / low) and all(len(_short(place)) <= 5 for place in places)):
        return places
    return _round_ticks(low, high, (1,) if high > 1000 * low else (1, 2, 5))


def _round_ticks(low: float, high: float, digits: tuple[int, ...]) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [round(n * 10.0**k, 12) for k in decades for n in digits]


def _short(place: float) -> str:
    """Return a number as an axis has it: 256, 0.5, 16.4k, 4M."""
    for least, size, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if place >= least:
            return f"{place / size:.3g}{letter}"
    return f"{place:g}"


def _overlap(rows: Rows, one: str, other: str) -> bool:
    """Whether the values of two columns have a part of their range in common."""
    (a, b), (c, d) = ((min(column), max(column)) for column in ([row[n] for row in rows] for n in (one, other)))
    return a <= d and c <= b


def _across(rows: Rows, look: Look) -> list:
    return [str(row[look.x]) if look.kind == "bar" else row[look.x] for row in rows]


def _apart(rows: Rows, names: list[str]) -> bool:
    return len({tuple(str(row[name]) for name in names) for row in rows}) == len(rows)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _finite(value: Any) -> float | None:
    return float(value) if abs(value) != float("inf") else None


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 900px; margin: 2em auto; padding: 0 1em; color: #1a1a1a }}
</style></head><body>
<h1>{title}</h1>
{parts}
</body></html>
"""
