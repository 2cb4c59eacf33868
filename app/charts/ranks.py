"""Charts of the first run shown: traffic between ranks, and quantities measured per rank."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app.charts.frame import frame
from experiments.runs.figures import measured_name
from experiments.runs.record import Run
from experiments.viewer import palette, pictures
from experiments.viewer.canvases.topology import places
from experiments.viewer.lanes import RANKS, group_ranks, lane_names
from experiments.viewer.pictures import AnyShown, Shown
from experiments.wording import units
from tracing import HELD

NUMBERED = 16  # ranks up to which the cells of a matrix have room for numbers
LINKS = 300  # most links of a graph of ranks; those with fewer bytes are not drawn
WIDEST = 8  # px of a link


def traffic(shown: Sequence[AnyShown]) -> go.Figure:
    """Return a figure of the bytes sent from each rank (rows) to each rank (columns) in the first run."""
    run = shown[0].run
    table, names = group_ranks(run.trace.traffic(), lane_names(run), both=True)
    words = [[units.size(cell) if cell else "" for cell in row] for row in table]
    to = names if len(names) <= 6 else [name.split()[-1] for name in names]
    cells = np.where(table > 0, table, np.nan).astype(np.float32)
    most = float(table.max())
    scale, unit = pictures.unit("bytes", most)
    numbers = [[units.number(cell / scale) if cell else "" for cell in row] for row in table]
    numbered = len(names) <= NUMBERED
    marks = [0.0, most / 2, most]
    figure = go.Figure(
        go.Heatmap(
            z=cells, x=to, y=names, customdata=words, xgap=2, ygap=2, zmin=0, zmax=most,
            colorbar={"title": {"text": unit}, "thickness": 10, "outlinewidth": 0, "tickvals": marks,
                      "ticktext": [units.number(mark / scale) for mark in marks]},
            colorscale=[list(stop) for stop in palette.TRAFFIC],
            text=numbers if numbered else None, texttemplate="%{text}" if numbered else None,
            textfont={"size": 12 if len(names) <= 8 else 9, "color": palette.DARK},
            hovertemplate="from %{y} to %{x}: %{customdata}<extra></extra>", hoverongaps=False,
        )
    )  # fmt: skip
    figure.update_layout(height=max(220, min(460, 90 + 34 * len(names))), margin={"l": 10, "r": 10, "t": 10, "b": 10})
    figure.update_xaxes(title_text="to rank", showgrid=False, type="category", tickangle=0)
    figure.update_yaxes(title_text="from rank", autorange="reversed", showgrid=False, type="category")
    return figure


def topology(shown: Sequence[AnyShown]) -> go.Figure:
    """Return a figure of the first run's ranks on a circle, servers in the middle; the width of a link shows
    its bytes.
    """
    run = shown[0].run
    table, names = group_ranks(run.trace.traffic(), lane_names(run), both=True)
    both = np.triu(table + table.T, 1)
    servers = sum(name.startswith("server") for name in names)
    x, y = places("star" if servers else "circle", len(names), servers)
    y = -y  # it points downwards on canvases
    figure = go.Figure()
    a, b = np.nonzero(both)
    busiest = np.argsort(-both[a, b], kind="stable")[:LINKS]
    a, b, moved = a[busiest], b[busiest], both[a, b][busiest]
    width = np.ceil(WIDEST * moved / moved.max(initial=1.0))
    for wide in np.unique(width):
        of = width == wide
        gap = np.full(of.sum(), np.nan)
        figure.add_scatter(
            x=np.stack([x[a[of]], x[b[of]], gap], 1).ravel().astype(np.float32),
            y=np.stack([y[a[of]], y[b[of]], gap], 1).ravel().astype(np.float32),
            mode="lines", line={"color": palette.DOING["communicate"].colour, "width": float(wide)}, opacity=0.75,
            hoverinfo="skip",
        )  # fmt: skip
    beside = [_beside(*ends) for ends in zip(x[a], y[a], x[b], y[b], strict=True)]
    figure.add_scatter(  # where the pointer finds a link, and its bytes are written if there are few
        x=((x[a] + x[b]) / 2).astype(np.float32), y=((y[a] + y[b]) / 2).astype(np.float32),
        mode="markers+text" if len(a) <= 12 else "markers",
        text=[_aside(where, _moved(table[s, d], table[d, s])) for where, s, d in zip(beside, a, b, strict=True)],
        marker={"size": 12, "opacity": 0}, textposition=beside,
        customdata=[
            "<br>".join(f"{names[s]} to {names[d]}: {units.size(table[s, d])}" for s, d in ((i, j), (j, i)))
            for i, j in zip(a, b, strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )  # fmt: skip
    figure.add_scatter(
        x=x.astype(np.float32), y=y.astype(np.float32), mode="markers+text" if len(names) <= 24 else "markers",
        text=[name.split()[-1] for name in names], textfont={"color": "#FFFFFF"},
        marker={"size": 24 if len(names) <= 24 else 11, "color": palette.RANK, "line": {"width": 0},
                "symbol": ["square" if rank < servers else "circle" for rank in range(len(names))]},
        customdata=[f"sends {units.size(s)}<br>receives {units.size(r)}"
                    for s, r in zip(table.sum(axis=1), table.sum(axis=0), strict=True)],
        hovertemplate="%{hovertext}<br>%{customdata}<extra></extra>", hovertext=names,
    )  # fmt: skip
    figure.update_layout(height=380, showlegend=False, margin={"l": 0, "r": 0, "t": 8, "b": 8}, dragmode=False)
    figure.update_xaxes(visible=False, range=[-1.25, 1.25], constrain="domain")
    figure.update_yaxes(visible=False, range=[-1.2, 1.2], scaleanchor="x")
    return figure


def _beside(x0: float, y0: float, x1: float, y1: float) -> str:
    """Return the side of a link's midpoint on which its label does not overlap it."""
    along, up = x1 - x0, y1 - y0
    if min(abs(along), abs(up)) < 0.2 * max(abs(along), abs(up)):  # vertical, or horizontal
        return "middle right" if abs(along) < abs(up) else "top center"
    return "top right" if along * up < 0 else "bottom right"


def _moved(there: float, back: float) -> str:
    """Return the amount that a link carries, such as "1.64 MB each way".

    It is "1.7 MB both ways" if the two directions differ, and "1.64 MB" if the link carries bytes one way only.
    """
    if not (there and back):
        return units.size(max(there, back))
    if units.size(there) == units.size(back):
        return f"{units.size(there)} each way"
    return f"{units.size(there + back)} both ways"


def _aside(where: str, label: str) -> str:
    """Return a label padded so that it stays clear of the widest link."""
    if where.startswith("middle"):
        return f"\u2002{label}"
    return f"{label}<br>\u2002" if where == "top center" else label


def by_rank(shown: list[Shown]) -> go.Figure:
    """Return a figure of the quantities that the first run measured, each with its mean on every rank."""
    run, names = shown[0].run, lane_names(shown[0].run)
    rows = rank_series(run)
    across = min(3, len(rows))
    down = -(-len(rows) // across)
    figure = make_subplots(down, across, subplot_titles=list(rows), horizontal_spacing=0.1, vertical_spacing=0.3 / down)
    for place, (rank, mean, most) in enumerate(rows.values()):
        row, column = divmod(place, across)
        figure.add_bar(
            x=mean.astype(np.float32), y=[names[one] for one in rank], orientation="h", showlegend=False,
            marker={"color": shown[0].line.colour, "line": {"width": 0}}, name="",
            customdata=most.astype(np.float32), row=row + 1, col=column + 1,
            hovertemplate="%{y}: %{x:.4g} on average, %{customdata:.4g} at most",
        )  # fmt: skip
    frame(figure, "mean over the run")
    figure.update_layout(height=down * max(170, min(420, 90 + 24 * len(next(iter(rows.values()))[0]))), bargap=0.3)
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_annotations(font_size=13)
    return figure


def rank_series(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return (ranks, mean, maximum) of each quantity that 2 to RANKS ranks recorded, such as staleness.

    The keys are titles with units, such as "staleness, updates".
    """
    tables = {
        "staleness, updates": (run.applied["rank"], run.applied["staleness"]),
        "versions of the weights": _versions(run),
    }
    for name in run.quantities:
        tables[measured_name(name)] = run.measurements(name)["rank"], run.measurements(name)["value"]
    found = {}
    for name, (rank, values) in tables.items():
        ranks, place = np.unique(rank, return_inverse=True)
        if 1 < len(ranks) <= RANKS:
            most = np.full(len(ranks), -np.inf)
            np.maximum.at(most, place, values)
            found[name] = ranks, np.bincount(place, values) / np.bincount(place), most
    return found


def _versions(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Return (rank, number of copies of its own weights) at every change of that number, or nothing if every rank holds
    one copy.
    """
    weights = (run.memory["kind"] == HELD.index("parameters")) & (run.memory["bytes"] > 0)
    rank, nbytes = run.memory["rank"][weights], run.memory["bytes"][weights]
    once = np.full(run.trace.ranks, np.iinfo(np.int64).max)
    np.minimum.at(once, rank, nbytes)
    times = nbytes / once[rank]
    several = times.max(initial=1.0) > 1
    return (rank, times) if several else (rank[:0], times[:0])
