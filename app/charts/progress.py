"""How runs compare: speed-up, efficiency, staleness."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.viewer import curves, palette
from experiments.viewer.pictures import HEIGHT, Shown
from experiments.wording import units


def speed_up(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """Draw how many times as fast as the first runs are: in samples/s, and in the time to a held-out `loss`."""
    figure = _against_ideal(shown, workers, loss, lambda times, count: times, "times as fast", ideal=True)
    return figure.update_yaxes(type="log", dtick=np.log10(2), exponentformat="none")


def efficiency(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """Draw the speed-up as a share of the ideal one, in percent."""
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
        if times.all():  # 0: a run was there from the start
            lines[f"time to a held-out loss of {units.loss(loss)}"] = times[0] / times
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


def staleness(shown: list[Shown]) -> go.Figure:
    """Draw how many updates old the parameters were that each applied update was computed from."""
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
