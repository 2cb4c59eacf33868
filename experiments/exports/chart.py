"""Rows of plain values as a Plotly figure, drawn as their Look says.

If rows are means, their lowest and highest values (`Spread`) are drawn as a band around the line, or as a whisker on
the bar.
"""

import csv
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

from experiments.viewer import palette
from experiments.viewer.look import HEIGHT, Look, Rows, Spread, groups, guess, hatch, line_style


def chart(rows: Rows, look: Look | None = None, spread: Spread = ()):
    """Return the figure of `rows`, without a theme. Infinite values leave a gap."""
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
            white = "rgba(255,255,255,0.6)"
            pattern = {"shape": hatch(number), "size": 6, "fgcolor": white, "fillmode": "overlay"}
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
    # Bars are placed by category, even if their labels look like numbers.
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
    """Add the area between the lowest and highest values where both are finite; nothing if they are all equal."""
    ends = [(place, a, b) for place, a, b in zip(x, low, high, strict=True) if None not in (_finite(a), _finite(b))]
    if all(a == b for _, a, b in ends):
        return
    there, below, above = zip(*ends, strict=True)
    figure.add_scatter(
        x=[*there, *there[::-1]], y=[*above, *below[::-1]], fill="toself", mode="none", fillcolor=colour, opacity=0.18,
        hoverinfo="skip", showlegend=False, legendgroup=group, name=f"{group}, range",
    )  # fmt: skip


def _whisker(y: list, low: tuple, high: tuple) -> dict[str, Any] | None:
    """Return error bars from the lowest to the highest values, or None if they are equal."""
    if low == high:
        return None
    up, down = ([_finite(abs(end - (mid or 0))) for mid, end in zip(y, ends, strict=True)] for ends in (high, low))
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 4}


def _add_theory(figure: Any, groups: dict[str, Rows], look: Look) -> None:
    """Add the theory as grey lines without points, in the legend once, and one line if all groups have the same."""
    for theory, dash in zip(look.theory, ("dot", "dashdot", "longdash"), strict=False):
        lines = [(_across(some, look), [_finite(row[theory]) for row in some]) for some in groups.values()]
        for number, (x, y) in enumerate(lines[:1] if all(line == lines[0] for line in lines) else lines):
            figure.add_scatter(
                x=x, y=y, name=theory, legendgroup=theory, mode="lines", showlegend=not number,
                line={"color": palette.MUTED, "dash": dash, "width": 1.8},
            )  # fmt: skip


def page(title: str, charts: list[tuple[str, str, Any]]) -> str:
    """Return a self-contained HTML page of (heading, text, figure), one after the other."""
    import html

    from plotly.io import to_html

    parts = []
    for number, (heading, text, figure) in enumerate(charts):
        figure.update_layout(template="plotly_white")
        drawn = to_html(figure, full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        parts.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n{drawn}")
    return _PAGE.format(title=html.escape(title), parts="\n".join(parts))


def write_rows(rows: Rows, path: Path) -> Path:
    """Write the rows to `path` as CSV with a header, and return the path. Raise OSError if that is impossible."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def _ticks(places: list[float]) -> list[float]:
    """Return a logarithmic axis's ticks: at `places` if their labels are short and apart, else at round values."""
    low, high = places[0], places[-1]
    gap = min((math.log(b / a) for a, b in pairwise(places)), default=1)
    if len(places) < 2 or (gap > 0.06 * math.log(high / low) and all(len(_short(place)) <= 5 for place in places)):
        return places
    return _round_ticks(low, high, (1,) if high > 1000 * low else (1, 2, 5))


def _round_ticks(low: float, high: float, digits: tuple[int, ...]) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [round(n * 10.0**k, 12) for k in decades for n in digits]


def _short(place: float) -> str:
    """Return a number as an axis label: 256, 0.5, 16.4k, 4M."""
    for least, size, letter in ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if place >= least:
            return f"{place / size:.3g}{letter}"
    return f"{place:g}"


def _across(rows: Rows, look: Look) -> list:
    return [str(row[look.x]) if look.kind == "bar" else row[look.x] for row in rows]


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
