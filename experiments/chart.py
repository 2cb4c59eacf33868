"""Chart: rows of plain values as a Plotly figure, by a declaration of a few words.

    Look(x="workers", y=("step",), colour="law", theory=("theory",), log="x")

A line, or a group of bars, for each value of `colour` and each column of `y`; columns of `theory` are drawn beside
them as dotted lines without points. Who declares nothing gets `guess(rows)`.
"""

from __future__ import annotations

import csv
from dataclasses import asdict, dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

Rows = list[dict[str, Any]]

LINES = (
    ("#1780C4", "solid", "circle", ""),
    ("#D55E00", "dash", "square", "/"),
    ("#C46A9E", "dot", "diamond", "x"),
    ("#8C6D31", "dashdot", "triangle-up", "-"),
    ("#7566C2", "longdash", "cross", "."),
)
"""Colour, dash, symbol and hatching of the first, second, ... group: the workbench's colours of runs."""
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

    def plain(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items() if v}

    @classmethod
    def of(cls, values: dict[str, Any]) -> Look:
        """From what `plain` gave."""
        return cls(**{name: tuple(v) if isinstance(v, list) else v for name, v in values.items()})


def guess(rows: Rows) -> Look:
    """The look of rows that say nothing about it.

    The first columns that tell the rows apart are what was varied, and the next number is what came of it.
    """
    names = list(rows[0])
    varied = next((names[:n] for n in range(1, len(names)) if _apart(rows, names[:n])), names[:1])
    numbers = [name for name in varied if all(_number(row[name]) for row in rows)]
    x = max(numbers, key=lambda name: len({row[name] for row in rows}), default=varied[0])
    y = next((n for n in names if n not in varied and all(_number(row[n]) for row in rows)), names[-1])
    return Look(x, (y,), "+".join(n for n in varied if n != x), "line" if numbers else "bar")


def chart(rows: Rows, look: Look | None = None):
    """The figure; it carries no theme. Infinite values leave a gap."""
    import plotly.graph_objects as go

    look = look or guess(rows)
    figure, groups = go.Figure(), _groups(rows, look)
    for number, (name, column, some) in enumerate((g, c, s) for c in look.y for g, s in groups.items()):
        colour, dash, symbol, hatch = LINES[number % len(LINES)]
        label = ", ".join(filter(None, (name, column if len(look.y) > 1 or not name else "")))
        x, y = [row[look.x] for row in some], [_finite(row[column]) for row in some]
        if look.kind == "bar":
            pattern = {"shape": hatch, "size": 6, "fgcolor": "rgba(255,255,255,0.6)", "fillmode": "overlay"}
            figure.add_bar(x=[str(v) for v in x], y=y, name=label, marker={"color": colour, "pattern": pattern})
        else:
            figure.add_scatter(
                x=x, y=y, name=label, mode="lines+markers", line={"color": colour, "dash": dash, "width": 2},
                marker={"symbol": symbol, "size": 8, "color": colour},
            )  # fmt: skip
        if column == look.y[-1]:
            for theory in look.theory:
                figure.add_scatter(
                    x=[str(v) for v in x] if look.kind == "bar" else x, y=[_finite(row[theory]) for row in some],
                    name=", ".join(filter(None, (name, theory))), mode="lines", opacity=0.8, showlegend=not name,
                    line={"color": colour, "dash": "dot", "width": 1.5},
                )  # fmt: skip
    figure.update_layout(
        height=HEIGHT, margin={"l": 10, "r": 10, "t": 26, "b": 10}, barmode="group", bargap=0.25,
        showlegend=len(figure.data) > 1,
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
    )  # fmt: skip
    figure.update_xaxes(title_text=look.x, type="log" if "x" in look.log else None, zeroline=False)
    figure.update_yaxes(title_text=look.title or ", ".join(look.y), zeroline=False)
    if "x" in look.log:
        places = sorted({row[look.x] for row in rows})
        figure.update_xaxes(tickvals=places, ticktext=[f"{place:g}" for place in places])
    if "y" in look.log:
        figure.update_yaxes(type="log", exponentformat="power")
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def page(title: str, charts: list[tuple[str, str, Any]]) -> str:
    """One page of HTML without any other file: (heading, text, figure) after each other."""
    import html

    from plotly.io import to_html

    parts = []
    for number, (heading, text, figure) in enumerate(charts):
        figure.update_layout(template="plotly_white")
        drawn = to_html(figure, full_html=False, include_plotlyjs=number == 0, config={"displaylogo": False})
        parts.append(f"<h2>{html.escape(heading)}</h2>\n<p>{html.escape(text)}</p>\n{drawn}")
    return _PAGE.format(title=html.escape(title), parts="\n".join(parts))


def write_rows(rows: Rows, path: Path) -> Path:
    """The rows as CSV with a header, at `path`; gives it back. OSError if that cannot be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return path


def _groups(rows: Rows, look: Look) -> dict[str, Rows]:
    """The rows by what tells them apart beside x, in the order they came."""
    groups: dict[str, Rows] = {}
    for row in rows:
        words = [
            str(row[n]) if isinstance(row[n], str) else f"{n} {row[n]}" for n in filter(None, look.colour.split("+"))
        ]
        groups.setdefault(", ".join(words), []).append(row)
    return groups


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
