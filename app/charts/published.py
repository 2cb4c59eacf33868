"""A chart of predicted against published utilisation, with one dot per configuration."""

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.study.planner_errors import Dot
from experiments.viewer import palette

BAND = 1.1  # edges of the band of 10 % around equality


def published_dots(dots: list[Dot]) -> go.Figure:
    """Return a figure of predicted against published utilisation, by source. Exact predictions lie on the solid line.

    Tokens per second would seem to lie on it however poor the predictions: they vary ten-thousandfold between runs.
    """
    figure = go.Figure()
    known = [dot.published for dot in dots]
    ends = 100 * np.array([0.9 * min(known), 1.1 * max(known)], np.float32)
    for factor, dash in ((1.0, "solid"), (BAND, "dot"), (1 / BAND, "dot")):
        figure.add_scatter(
            x=ends, y=factor * ends, mode="lines", hoverinfo="skip", showlegend=factor != 1 / BAND,
            name="equal" if factor == 1 else "10 % apart", line={"color": palette.MUTED, "width": 1.5, "dash": dash},
        )  # fmt: skip
    for source, line in zip(dict.fromkeys(dot.source for dot in dots), palette.RUNS, strict=True):
        mine = [dot for dot in dots if dot.source == source]
        figure.add_scatter(
            x=100 * np.array([dot.published for dot in mine], np.float32),
            y=100 * np.array([dot.predicted for dot in mine], np.float32), mode="markers", name=source,
            marker={"symbol": line.symbol, "color": line.colour, "size": 8, "opacity": 0.8},
            text=[f"{dot.name}{', ' * bool(dot.remark)}{dot.remark}" for dot in mine],
            hovertemplate="%{text}: %{x:.1f} % published, %{y:.1f} % predicted<extra></extra>",
        )  # fmt: skip
    frame(figure, "published MFU, %")
    figure.update_xaxes(rangemode="normal")
    figure.update_yaxes(title="predicted MFU, %")
    figure.update_layout(height=430, legend={"y": -0.22, "yanchor": "top"})
    return figure
