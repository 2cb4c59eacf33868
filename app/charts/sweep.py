"""Charts of a sweep: the losses of its runs in one picture, one result of each run as a bar, and a map over two
settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.runs.figures import FIGURES, LAST, final_figure, run_figure_text
from experiments.runs.record import Run
from experiments.viewer import palette
from experiments.viewer.pictures import HEIGHT, Picture, Shown, panel
from experiments.wording import units
from experiments.wording.units import DIVERGED

TALL = 350  # px: the height of two rows of small pictures


def overlaid(shown: list[Shown], axis: str, log: bool, most: float, top: float) -> Picture:
    """Return the training losses of a sweep's runs in one picture, with the same axes as its panels."""
    picture = panel(shown, axis, log, most, top)
    training = [one for one in picture.series if not one.bare]
    named = [
        replace(series, name=one.name, key=one.name, dash=one.line.dash, width=2.0)
        for one, series in zip(shown, training, strict=True)
    ]
    return replace(picture, series=named, height=TALL)


def outcome(shown: list[Shown], names: tuple[str, ...], figure: str, title: str, word: str) -> go.Figure:
    """Return a bar chart of one value of each run's summary. A diverged run has a word in place of its loss."""
    known = [final_figure(s.run.status, s.run.summary, figure) for s in shown]
    gone = [s.run.status == DIVERGED and figure in LAST for s in shown]
    values = np.array(
        [0 if lost else np.nan if value is None else value for value, lost in zip(known, gone, strict=True)]
    )
    bars = go.Figure(
        go.Bar(
            x=list(names), y=values.astype(np.float32), hovertemplate="%{x}: %{customdata}<extra></extra>",
            customdata=[run_figure_text(s.run, figure) for s in shown],
            text=[DIVERGED if lost else "" for lost in gone], textposition="outside",
            marker={"color": [s.line.colour for s in shown], "line": {"width": 0}},
        )
    )  # fmt: skip
    frame(bars, word)
    bars.update_layout(height=HEIGHT, bargap=0.35)
    bars.update_xaxes(type="category", rangemode="normal")
    return bars.update_yaxes(title_text=title, rangemode="tozero", exponentformat="none", separatethousands=True)


@dataclass(frozen=True)
class Combinations:
    """Runs over the values of two settings.

    `runs` maps (column, row) to a run or, if there is none yet, to the reason why.
    """

    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    runs: Mapping[tuple[int, int], Run | str]

    def values(self, figure: str) -> np.ndarray:
        """Return one value, `figure`, of each run's summary, shape (rows, columns); NaN where there is none."""
        table = np.full((len(self.rows), len(self.columns)), np.nan)
        for (column, row), run in self.runs.items():
            known = isinstance(run, Run) and run.status == "finished"
            value = run.summary.get(figure) if known else None
            table[row, column] = np.nan if value is None else value
        return table

    def words(self, figure: str) -> list[list[str]]:
        """Return one value, `figure`, of each run's summary as text with units. The text of an unfinished run says that
        it is unfinished.
        """
        return [
            [_cell(self.runs[column, row], figure) for column in range(len(self.columns))]
            for row in range(len(self.rows))
        ]


def heat(grid: Combinations, figure: str) -> str:
    """Return an HTML table of one value, `figure`, of each run's summary. Larger values have a deeper colour.

    A cell with a run is a button, whose data-cell is its column and row: "1 0".
    """
    values = grid.values(figure)
    known = values[np.isfinite(values)]
    spread = np.log10(values) if len(known) and known.min() > 0 and known.max() > 20 * known.min() else values
    low, high = (np.nanmin(spread), np.nanmax(spread)) if len(known) else (0.0, 0.0)
    share = (spread - low) / (high - low if high > low else 1.0)
    words, (least, most) = grid.words(figure), (colour for _, colour in palette.HEAT)

    def cell(column: int, row: int) -> str:
        said = escape(words[row][column])
        if not isinstance(grid.runs[column, row], Run):
            return f"<td>{said}</td>"
        part = share[row, column]
        deep = "" if np.isnan(part) else f' style="background: color-mix(in srgb, {most} {100 * part:.0f}%, {least})"'
        where = escape(f"{grid.across} {grid.columns[column]}, {grid.down} {grid.rows[row]}: {words[row][column]}")
        return (
            f'<td><button type="button" data-cell="{column} {row}"{deep} title="Open this run" '
            f'aria-label="Open the run with {where}">{said}</button></td>'
        )

    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in grid.columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(cell(c, row) for c in range(len(grid.columns)))}</tr>'
        for row, name in enumerate(grid.rows)
    )
    corner = f"<th>{escape(grid.down)} ↓ &nbsp;{escape(grid.across)} →</th>"
    return f"<table><thead><tr>{corner}{heads}</tr></thead><tbody>{rows}</tbody></table>"


def _cell(run: Run | str, figure: str) -> str:
    if isinstance(run, str):
        return run
    if run.status != "finished":
        return run.status
    return units.SAY[FIGURES[figure].unit](run.summary[figure]) if run.summary.get(figure) is not None else "–"
