"""How runs went, one beside the other: loss and what else was measured, against steps, samples, time or bytes."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from app import curves, palette, units
from app.charts.frame import HEIGHT, Shown, frame, unit

ALWAYS = 5.0  # a loss up to which the axis shows everything: more than twice that of guessing among ten classes


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
    frame(figure, word or axis)
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
    frame(figure, "workers")
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
    frame(bars, word)
    bars.update_layout(height=HEIGHT, bargap=0.35)
    bars.update_xaxes(type="category", rangemode="normal")
    return bars.update_yaxes(title_text=title, rangemode="tozero")


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
    frame(figure, title("step", ""))
    figure.update_layout(height=20 + 170 * down)
    figure.update_annotations(font_size=13)
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
    frame(figure, "staleness: how many updates old the parameters were; share of all updates in %")
    figure.update_layout(bargap=0.15, height=280)
    return figure


def title(axis: str, word: str) -> str:
    """What an axis is called; `word` is its unit."""
    names = {"step": "step", "samples": "samples seen by all workers", "seconds": "time", "bytes": "sent by all ranks"}
    return f"{names[axis]}, {word}" if word else names[axis]


def _layout(figure: go.Figure, axis: str, word: str) -> None:
    frame(figure, title(axis, word))
    figure.update_layout(height=HEIGHT, hovermode="x unified")


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
