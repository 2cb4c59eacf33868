"""Charts: what was recorded, as Plotly figures. The only file that knows the plotting library.

Figures are built from float32 arrays and carry no theme: Streamlit lays its own, light or dark, under them. Axes are
in units that people read; the arrays stay in SI.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

import algorithms
from app import curves, palette, units
from cluster.trace import HELD, KINDS
from experiments.experiment import Experiment
from experiments.kernel_times import Report
from experiments.result import Run

CONFIG = {"displayModeBar": False}
HEIGHT = 260  # px of a chart of curves
ALWAYS = 5.0  # a loss up to which the axis shows everything: more than twice that of guessing among ten classes
TIMED = {"Numba": "cpu", "torch": "torch", "NumPy": "numpy", "CUDA": "gpu"}  # what is timed of a kernel
RANKS = 64  # rows and columns that can be told apart; more are drawn in groups
LINKS = 300  # of a graph of ranks; what moves less is not drawn
WIDEST = 8  # px of a link
ROLES = {"pipelined": "stage", "model_parallel": "stage", "decoupled": "module"}  # of a rank that trains; else worker


@dataclass(frozen=True)
class Shown:
    """A run on the page: its name there, its colour (an index of palette.RUNS), and the name of its folder."""

    name: str
    run: Run
    colour: int
    folder: str = ""

    @property
    def line(self) -> palette.Line:
        """How it is drawn."""
        return palette.RUNS[self.colour % len(palette.RUNS)]


def loss(shown: list[Shown], axis: str, log: bool = False) -> go.Figure:
    """Training loss (thin: mini-batches, bold: running mean) and held-out loss (points) of all runs against `axis`."""
    figure = go.Figure()
    scale, word = unit(axis, max((_last(curves.training(s.run, axis)[1]) for s in shown), default=1.0))
    tops = []
    for s in shown:
        every, smooth = curves.training(s.run, axis)
        held = curves.held_out(s.run, axis)
        colour, dash, symbol = s.line
        if len(shown) == 1:
            figure.add_scatter(
                x=every.x / scale, y=every.y, mode="lines", line={"color": colour, "width": 1}, opacity=0.22,
                name="mini-batches", hoverinfo="skip", showlegend=False,
            )  # fmt: skip
        figure.add_scatter(
            x=smooth.x / scale, y=smooth.y, mode="lines", line={"color": colour, "width": 2.2, "dash": dash},
            name="training", showlegend=len(shown) == 1,
            hovertemplate="training %{y:.4g}<extra>" + s.name + "</extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=held.x / scale, y=held.y, mode="lines+markers" if len(shown) == 1 else "markers",
            showlegend=len(shown) == 1,
            line={"color": colour, "width": 1, "dash": "dot"},
            marker={"symbol": symbol, "size": 6, "color": "rgba(0,0,0,0)", "line": {"color": colour, "width": 1.6}},
            name="held-out", hovertemplate="held-out %{y:.4g}<extra>" + s.name + "</extra>",
        )  # fmt: skip
        tops.append(_top(smooth.y, held.y))
    _layout(figure, axis, word)
    known = [top for top in tops if top]
    if log:
        figure.update_yaxes(type="log", exponentformat="power")
    elif known:
        figure.update_yaxes(range=[min(0.0, *(low for low, _ in known)), max(high for _, high in known) * 1.08])
    return figure


def panel(shown: list[Shown], axis: str, log: bool, most: float, top: float) -> go.Figure:
    """One of several small pictures of the loss, that share their axes: x to `most` in SI units, y to `top`."""
    figure = go.Figure()
    scale, word = unit(axis, most)
    for s in shown:
        _, smooth = curves.training(s.run, axis)
        held = curves.held_out(s.run, axis)
        figure.add_scatter(
            x=smooth.x / scale, y=smooth.y, mode="lines", line={"color": s.line.colour, "width": 2}, name="training",
            hovertemplate="training %{y:.4g}<extra></extra>",
        )  # fmt: skip
        figure.add_scatter(
            x=held.x / scale, y=held.y, mode="markers", name="held-out",
            hovertemplate="held-out %{y:.4g}<extra></extra>",
            marker={"symbol": s.line.symbol, "size": 4, "color": "rgba(0,0,0,0)",
                    "line": {"color": s.line.colour, "width": 1.2}},
        )  # fmt: skip
    _frame(figure, word or axis)
    figure.update_layout(height=170, showlegend=False, margin={"l": 6, "r": 6, "t": 4, "b": 4})
    figure.update_xaxes(range=[0, most / scale], nticks=4)
    if log:
        figure.update_yaxes(type="log", exponentformat="power", nticks=4)
    else:
        figure.update_yaxes(range=[0, top], nticks=4)
    return figure


def reach(shown: list[Shown], axis: str) -> tuple[float, float]:
    """(farthest x in SI units, highest loss worth seeing) of all runs: what panels beside each other share."""
    farthest, tops = 0.0, []
    for s in shown:
        _, smooth = curves.training(s.run, axis)
        farthest = max(farthest, _last(smooth))
        tops.append(_top(smooth.y, curves.held_out(s.run, axis).y))
    return farthest or 1.0, max((top for _, top in filter(None, tops)), default=1.0) * 1.08


def speed_up(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """How many times faster than the first run: in samples per second, and in the time to a held-out `loss`."""
    figure = _against_ideal(shown, workers, loss, lambda times, count: times, "times as fast", ideal=True)
    return figure.update_yaxes(type="log", dtick=np.log10(2), exponentformat="none")


def efficiency(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """The same as a share of the ideal, in percent."""
    figure = _against_ideal(shown, workers, loss, lambda times, count: 100 * times / count, "% of the ideal")
    return figure.update_yaxes(rangemode="tozero")


def _against_ideal(shown, workers, loss, measure, title: str, ideal: bool = False) -> go.Figure:
    figure = go.Figure()
    count = np.array(workers) / workers[0]
    if ideal:
        figure.add_scatter(
            x=[str(n) for n in workers], y=count.astype(np.float32), mode="lines", name="ideal", hoverinfo="skip",
            line={"color": palette.MUTED, "width": 1.5, "dash": "dot"},
        )  # fmt: skip
    rates = np.array([s.run.summary["samples_per_second"] or np.nan for s in shown])
    lines = {"samples per second": rates / rates[0]}
    if loss is not None:
        times = np.array([curves.reached(s.run, loss) for s in shown])
        if times.all():  # 0: somebody was there from the start
            lines[f"time to a held-out loss of {units.number(loss)}"] = times[0] / times
    for (name, faster), look in zip(lines.items(), palette.RUNS, strict=False):
        figure.add_scatter(
            x=[str(n) for n in workers], y=measure(faster, count).astype(np.float32), mode="lines+markers", name=name,
            line={"color": look.colour, "width": 2.2, "dash": look.dash}, marker={"symbol": look.symbol, "size": 8},
            hovertemplate="%{y:.3g} " + title + "<extra>" + name + "</extra>",
        )  # fmt: skip
    _frame(figure, "workers")
    figure.update_layout(height=HEIGHT, hovermode="x unified")
    figure.update_xaxes(type="category", rangemode="normal")
    return figure.update_yaxes(title_text=title)


def outcome(shown: list[Shown], names: tuple[str, ...], figure: str, title: str, word: str) -> go.Figure:
    """A figure of the summary for each of several runs, as bars."""
    values = np.array([s.run.summary[figure] if s.run.summary[figure] is not None else np.nan for s in shown])
    bars = go.Figure(
        go.Bar(
            x=list(names), y=values.astype(np.float32), marker={"color": shown[0].line.colour, "line": {"width": 0}},
            hovertemplate="%{x}: %{y:.4g}<extra></extra>",
        )
    )  # fmt: skip
    _frame(bars, word)
    bars.update_layout(height=HEIGHT, bargap=0.35)
    bars.update_xaxes(type="category", rangemode="normal")
    return bars.update_yaxes(title_text=title, rangemode="tozero")


def accuracy(shown: list[Shown], axis: str) -> go.Figure:
    """Held-out accuracy of all runs against `axis`."""
    figure = go.Figure()
    lines = [curves.held_out(s.run, axis, "accuracy") for s in shown]
    scale, word = unit(axis, max((_last(line) for line in lines), default=1.0))
    for s, line in zip(shown, lines, strict=True):
        colour, dash, symbol = s.line
        figure.add_scatter(
            x=line.x / scale, y=100 * line.y, mode="lines+markers", name=s.name, showlegend=False,
            line={"color": colour, "width": 2, "dash": dash},
            marker={"symbol": symbol, "size": 6, "color": "rgba(0,0,0,0)", "line": {"color": colour, "width": 1.6}},
            hovertemplate="%{y:.1f} %<extra>" + s.name + "</extra>",
        )  # fmt: skip
    _layout(figure, axis, word)
    highest = max((float(line.y.max(initial=0.0)) for line in lines), default=0.0)
    figure.update_yaxes(range=[0, 102 if highest > 0.5 else 110 * max(highest, 0.01)])
    return figure


def measured(shown: list[Shown]) -> go.Figure:
    """What the methods of all runs measured, one small picture per quantity."""
    names = list(dict.fromkeys(quantity for s in shown for quantity in s.run.quantities))
    across = min(3, len(names))
    down = -(-len(names) // across)
    figure = make_subplots(down, across, subplot_titles=names, horizontal_spacing=0.07, vertical_spacing=0.28 / down)
    for s in shown:
        for quantity in s.run.quantities:
            row, column = divmod(names.index(quantity), across)
            line = curves.measured(s.run, quantity)
            figure.add_scatter(
                x=line.x, y=line.y, mode="lines" if len(line.x) > 1 else "markers", name=s.name, showlegend=False,
                line={"color": s.line.colour, "width": 2, "dash": s.line.dash}, marker={"color": s.line.colour},
                hovertemplate="%{y:.4g}<extra>" + s.name + "</extra>", row=row + 1, col=column + 1,
            )  # fmt: skip
    _frame(figure, title("step", ""))
    figure.update_layout(height=20 + 170 * down)
    figure.update_annotations(font_size=13)
    return figure


def traffic(shown: list[Shown]) -> go.Figure:
    """Bytes from each rank (rows) to each rank (columns) of the first run."""
    run = shown[0].run
    table, names = _grouped(run.trace.traffic(), lane_names(run), both=True)
    words = [[units.size(cell) if cell else "" for cell in row] for row in table]
    to = names if len(names) <= 6 else [name.split()[-1] for name in names]
    cells = np.where(table > 0, table, np.nan).astype(np.float32)
    figure = go.Figure(
        go.Heatmap(
            z=cells, x=to, y=names, customdata=words, xgap=2, ygap=2, zmin=0, zmax=float(table.max()), showscale=False,
            colorscale=[list(stop) for stop in palette.TRAFFIC],
            text=words if len(names) <= 8 else None, texttemplate="%{text}" if len(names) <= 8 else None,
            hovertemplate="from %{y} to %{x}: %{customdata}<extra></extra>", hoverongaps=False,
        )
    )  # fmt: skip
    figure.update_layout(height=max(220, min(460, 90 + 34 * len(names))), margin={"l": 10, "r": 10, "t": 10, "b": 10})
    figure.update_xaxes(title_text="to rank", showgrid=False, type="category", tickangle=0)
    figure.update_yaxes(title_text="", autorange="reversed", showgrid=False, type="category")
    return figure


def topology(shown: list[Shown]) -> go.Figure:
    """Who talks to whom in the first run: ranks on a circle, servers in its middle, links as wide as their bytes."""
    run = shown[0].run
    table, names = _grouped(run.trace.traffic(), lane_names(run), both=True)
    both = np.triu(table + table.T, 1)
    servers = run.experiment.servers if len(names) == run.trace.ranks else 0
    x, y = _round_table(len(names), servers)
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
    figure.add_scatter(  # where the pointer finds a link, and its bytes stand if there are few
        x=((x[a] + x[b]) / 2).astype(np.float32), y=((y[a] + y[b]) / 2).astype(np.float32),
        mode="markers+text" if len(a) <= 12 else "markers", text=[units.size(size) for size in moved],
        marker={"size": 12, "opacity": 0},
        textposition=["middle right" if s else "top center" for s in abs(x[a] - x[b]) < abs(y[a] - y[b])],
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


def _round_table(ranks: int, servers: int) -> tuple[np.ndarray, np.ndarray]:
    """x and y of each rank: clockwise from the top on a circle, servers in its middle."""

    def circle(count: int, radius: float) -> np.ndarray:
        turn = 2 * np.pi * np.arange(count) / max(count, 1)
        return radius * np.stack([np.sin(turn), np.cos(turn)])

    inner = circle(servers, 0.0 if servers == 1 else 0.35)
    return tuple(np.concatenate([inner, circle(ranks - servers, 1.0)], axis=1))


def roofline(report: Report, chosen: str) -> go.Figure:
    """What kernels reach (FLOP/s) at their operational intensity (FLOPs per byte), under what the machine can do."""
    figure = go.Figure()
    rows = [row for row in report.rows if row.flops]
    roofs = [("CPU", report.cpu)] + ([("GPU", report.gpu)] if report.gpu else [])
    edges = [row.intensity for row in rows] + [peaks.flops / peaks.near for _, peaks in roofs]
    x = np.geomspace(min(edges) / 2, max(edges) * 4, 60, dtype=np.float32)
    for where, peaks in roofs:
        for name, bandwidth, dash in (("of this size", peaks.near, "solid"), ("in memory", peaks.bandwidth, "dot")):
            figure.add_scatter(
                x=x, y=np.minimum(peaks.flops, x * bandwidth) / 1e9, mode="lines", hoverinfo="skip",
                name=f"roof of the {where}, vectors {name}", line={"color": palette.MUTED, "width": 2, "dash": dash},
            )  # fmt: skip
    for (label, which), line in zip(TIMED.items(), palette.RUNS, strict=False):
        timed = [row for row in rows if getattr(row, which) and (which in ("cpu", "gpu") or row.kernel == chosen)]
        if timed:
            large = np.array([row.kernel == chosen for row in timed])
            figure.add_scatter(
                x=np.array([row.intensity for row in timed], np.float32),
                y=np.array([row.flops / getattr(row, which) / 1e9 for row in timed], np.float32),
                mode="markers", name=label, customdata=[row.kernel for row in timed],
                marker={"symbol": line.symbol, "color": line.colour, "size": np.where(large, 14, 7),
                        "opacity": np.where(large, 1.0, 0.5)},
                hovertemplate="%{customdata}: %{y:.3g} GFLOP/s at %{x:.3g} FLOPs per byte<extra>" + label + "</extra>",
            )  # fmt: skip
    _frame(figure, "operational intensity in FLOPs per byte; GFLOP/s")
    figure.update_xaxes(type="log", rangemode="normal", exponentformat="power", dtick=1)
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    figure.update_layout(height=400)
    return figure


def staleness(shown: list[Shown]) -> go.Figure:
    """How many updates old the parameters were that each applied update was computed from."""
    figure = go.Figure()
    for s in shown:
        values = s.run.applied["staleness"]
        if not len(values):
            continue
        width = max(1, int(np.ceil((values.max() + 1) / 60)))
        share = np.bincount(values // width) / len(values)
        figure.add_bar(
            x=(np.arange(len(share)) * width).astype(np.float32), y=(100 * share).astype(np.float32), name=s.name,
            marker={"color": s.line.colour, "line": {"width": 0}}, opacity=0.85, showlegend=False,
            hovertemplate="%{x} updates old: %{y:.1f} %<extra>" + s.name + "</extra>",
        )  # fmt: skip
    _frame(figure, "staleness: how many updates old the parameters were; share of all updates in %")
    figure.update_layout(bargap=0.15, height=280)
    return figure


def shares(shown: list[Shown]) -> go.Figure:
    """What each rank of the first run spent its time on, in percent of the run."""
    run = shown[0].run
    busy = run.trace.busy()
    busy, names = _grouped(busy, lane_names(run))
    total = np.maximum(busy.sum(axis=1, keepdims=True), 1e-30)
    figure = go.Figure()
    for index, kind in enumerate(KINDS):
        if not busy[:, index].any():
            continue
        look = palette.DOING[kind]
        figure.add_bar(
            x=(100 * busy[:, index] / total[:, 0]).astype(np.float32), y=names, orientation="h", name=kind,
            customdata=[units.seconds(value) for value in busy[:, index]],
            marker={"color": look.colour, "pattern": {"shape": look.hatch.replace(".", ""), "size": 6,
                    "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.55)"}, "line": {"width": 0}},
            hovertemplate="%{y} · " + kind + ": %{customdata} (%{x:.1f} %)<extra></extra>",
        )  # fmt: skip
    _frame(figure, "share of the time, %")
    figure.update_layout(barmode="stack", bargap=0.25, height=max(200, min(520, 80 + 26 * len(names))))
    figure.update_layout(legend_traceorder="normal")
    figure.update_xaxes(range=[0, 100])
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def memory(shown: list[Shown]) -> go.Figure:
    """What each rank of the first run held when it held most, by what it was held for."""
    run = shown[0].run
    held, names = run.held(), lane_names(run)
    if len(names) > RANKS:  # of a group, its fullest rank
        edges = np.linspace(0, len(names), RANKS + 1).astype(int)
        fullest = [a + int(held[a:b].sum(axis=1).argmax()) for a, b in pairwise(edges)]
        held, names = held[fullest], [names[rank] for rank in fullest]
    scale, word = unit("bytes", float(held.sum(axis=1).max()))
    figure = go.Figure()
    for kind, (name, (colour, hatch)) in enumerate(palette.HOLDING.items()):
        if held[:, kind].any():
            figure.add_bar(
                x=(held[:, kind] / scale).astype(np.float32), y=names, orientation="h", name=name,
                customdata=[units.size(value) for value in held[:, kind]],
                marker={"color": colour, "line": {"width": 0}, "pattern": {"shape": hatch, "size": 6,
                        "fillmode": "overlay", "fgcolor": "rgba(255,255,255,0.55)"}},
                hovertemplate="%{y} · " + name + ": %{customdata}<extra></extra>",
            )  # fmt: skip
    _frame(figure, f"held at the fullest moment of each rank, {word}")
    figure.update_layout(barmode="stack", bargap=0.25, height=max(200, min(520, 80 + 26 * len(names))))
    figure.update_layout(legend_traceorder="normal")
    if run.experiment.rank_memory:
        figure.add_vline(run.experiment.rank_memory / scale, line_dash="dot", annotation_text="there is")
    figure.update_yaxes(autorange="reversed", type="category")
    return figure


def by_rank(shown: list[Shown]) -> go.Figure:
    """What the ranks of the first run measured one by one, in the mean: of stages, how late and how far apart."""
    run, names = shown[0].run, lane_names(shown[0].run)
    rows = ranked(run)
    across = min(3, len(rows))
    down = -(-len(rows) // across)
    figure = make_subplots(down, across, subplot_titles=list(rows), horizontal_spacing=0.1, vertical_spacing=0.3 / down)
    for place, (rank, mean, most) in enumerate(rows.values()):
        row, column = divmod(place, across)
        figure.add_bar(
            x=mean.astype(np.float32), y=[names[one] for one in rank], orientation="h", showlegend=False,
            marker={"color": shown[0].line.colour, "line": {"width": 0}}, name="",
            customdata=most.astype(np.float32), row=row + 1, col=column + 1,
            hovertemplate="%{y}: %{x:.4g} in the mean, %{customdata:.4g} at most",
        )  # fmt: skip
    _frame(figure, "mean over the run")
    figure.update_layout(height=down * max(170, min(420, 90 + 24 * len(next(iter(rows.values()))[0]))), bargap=0.3)
    figure.update_yaxes(autorange="reversed", type="category")
    figure.update_annotations(font_size=13)
    return figure


def ranked(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """(ranks, mean, most) of what several ranks, at most RANKS, have: staleness, versions, and quantities measured."""
    tables = {"staleness": (run.applied["rank"], run.applied["staleness"]), "versions of the weights": _versions(run)}
    tables |= {name: (run.measured(name)["rank"], run.measured(name)["value"]) for name in run.quantities}
    found = {}
    for name, (rank, values) in tables.items():
        ranks, place = np.unique(rank, return_inverse=True)
        if 1 < len(ranks) <= RANKS:
            most = np.full(len(ranks), -np.inf)
            np.maximum.at(most, place, values)
            found[name] = ranks, np.bincount(place, values) / np.bincount(place), most
    return found


def _versions(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """(rank, how many times its own weights it holds) at every change; nothing if all hold them once all the time."""
    weights = (run.memory["kind"] == HELD.index("parameters")) & (run.memory["bytes"] > 0)
    rank, nbytes = run.memory["rank"][weights], run.memory["bytes"][weights]
    once = np.full(run.trace.ranks, np.iinfo(np.int64).max)
    np.minimum.at(once, rank, nbytes)
    times = nbytes / once[rank]
    several = times.max(initial=1.0) > 1
    return (rank, times) if several else (rank[:0], times[:0])


def lane_names(run: Run) -> list[str]:
    """What ranks are called: their number and their role."""
    return rank_names(run.experiment, run.trace.ranks)


def rank_names(experiment: Experiment, ranks: int) -> list[str]:
    """The same for so many ranks of an experiment."""
    servers = experiment.servers
    role = ROLES.get(algorithms.family(experiment.algorithm), "worker")
    if hasattr(experiment.module, "plan"):
        plan = experiment.module.plan(experiment.workers, experiment.knobs)
        role = "stage" if plan.stages == ranks and not plan.shared else "rank"  # which holds several, or shares one
    return [f"{'server' if rank < servers else role} {rank}" for rank in range(ranks)]


def _grouped(table: np.ndarray, names: list[str], both: bool = False) -> tuple[np.ndarray, list[str]]:
    """Neighbouring ranks added up until there are at most RANKS rows (and columns)."""
    if len(table) <= RANKS:
        return table, names
    edges = np.linspace(0, len(table), RANKS + 1).astype(int)
    table = np.add.reduceat(table, edges[:-1], axis=0)
    if both:
        table = np.add.reduceat(table, edges[:-1], axis=1)
    return table, [f"{a}-{b - 1}" for a, b in pairwise(edges)]


def unit(axis: str, largest: float) -> tuple[float, str]:
    """(how many SI units one unit of the axis is, its name), so that labels have few digits."""
    if axis == "seconds":
        return next(((scale, name) for scale, name in ((1, "s"), (1e-3, "ms")) if largest >= scale), (1e-6, "µs"))
    if axis == "bytes":
        steps = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
        return next(((scale, name) for scale, name in steps if largest >= scale), (1, "bytes"))
    return 1, ""


def title(axis: str, word: str) -> str:
    """What an axis is called; `word` is its unit."""
    names = {"step": "step", "samples": "samples seen by all workers", "seconds": "time", "bytes": "sent by all ranks"}
    return f"{names[axis]}, {word}" if word else names[axis]


def _layout(figure: go.Figure, axis: str, word: str) -> None:
    _frame(figure, title(axis, word))
    figure.update_layout(height=HEIGHT, hovermode="x unified")


def _frame(figure: go.Figure, x: str) -> None:
    figure.update_layout(
        margin={"l": 10, "r": 10, "t": 22, "b": 8},
        legend={"orientation": "h", "x": 0, "y": 1.0, "yanchor": "bottom", "title": {"text": ""}},
        dragmode="zoom",
    )
    figure.update_xaxes(title_text=x, title_standoff=8, rangemode="tozero", zeroline=False)
    figure.update_yaxes(title_text="", zeroline=False)


def _last(line: curves.Line) -> float:
    return float(line.x[-1]) if len(line.x) else 0.0


def _top(*lines: np.ndarray) -> tuple[float, float] | None:
    """(lowest, highest) that deserves to be seen: not the first leap of a bad start, nor the last of a divergence."""
    values = np.concatenate(lines)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    usual = float(np.quantile(np.abs(values), 0.9))
    return float(values.min()), min(float(values.max()), max(8 * usual, ALWAYS))
