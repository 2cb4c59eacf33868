"""How fast kernels are on this machine, and how fast they could be."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.measure.kernel_times import Report
from experiments.plots import palette

TIMED = {"Numba": "cpu", "torch": "torch", "NumPy": "numpy", "CUDA": "gpu"}  # what is timed of a kernel


def roofline(report: Report, chosen: str) -> go.Figure:
    """Draw what kernels reach (FLOP/s) at their operational intensity (FLOPs per byte), below the machine's roof."""
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
    frame(figure, "operational intensity in FLOPs per byte; GFLOP/s")
    figure.update_xaxes(type="log", rangemode="normal", exponentformat="power", dtick=1)
    figure.update_yaxes(type="log", exponentformat="power", dtick=1)
    figure.update_layout(height=400)
    return figure
