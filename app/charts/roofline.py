"""The roofline chart: how fast kernels are on this machine, and how fast they could be."""

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.measure.kernel_times import Peaks, Report, Row, roof_share
from experiments.specification.catalogue import KERNELS
from experiments.viewer import palette
from experiments.wording import units

TIMED = {"Numba": "cpu", "torch": "torch", "NumPy": "numpy", "CUDA": "gpu"}  # what is timed of a kernel


def roofline(report: Report, chosen: str) -> go.Figure:
    """Return a figure of the speed of kernels (FLOP/s) against operational intensity (FLOPs per byte), below the
    machine's roofs.

    The solid roof is that of the memory level which holds the chosen kernel's working set. The dotted ones are those of
    the nearest cache, which no kernel exceeds, and of main memory.
    """
    figure = go.Figure()
    rows = [row for row in report.rows if row.flops]
    devices = [("CPU", report.cpu)] + ([("GPU", report.gpu)] if report.gpu else [])
    roofs = [(where, peaks, *roof) for where, peaks in devices for roof in _roofs(peaks, report.row(chosen))]
    edges = [row.intensity for row in rows] + [peaks.flops / bandwidth for _, peaks, _, bandwidth, _ in roofs]
    x = np.geomspace(min(edges) / 2, max(edges) * 4, 60, dtype=np.float32)
    for where, peaks, name, bandwidth, dash in roofs:
        figure.add_scatter(
            x=x, y=np.minimum(peaks.flops, x * bandwidth) / 1e9, mode="lines", hoverinfo="skip",
            name=f"roof of the {where}, {name}", line={"color": palette.MUTED, "width": 2, "dash": dash},
        )  # fmt: skip
    for (label, which), line in zip(TIMED.items(), palette.RUNS, strict=False):
        timed = [row for row in rows if getattr(row, which) and (which in ("cpu", "gpu") or row.kernel == chosen)]
        if timed:
            large = np.array([row.kernel == chosen for row in timed])
            figure.add_scatter(
                x=np.array([row.intensity for row in timed], np.float32),
                y=np.array([row.flops / getattr(row, which) / 1e9 for row in timed], np.float32),
                mode="markers", name=label, customdata=[KERNELS[row.kernel].title for row in timed],
                text=[_reached(report, row, which) for row in timed],
                marker={"symbol": line.symbol, "color": line.colour, "size": np.where(large, 14, 7),
                        "opacity": np.where(large, 1.0, 0.5)},
                hovertemplate="%{customdata}: %{y:.3g} GFLOP/s at %{x:.3g} FLOPs per byte, %{text}"
                              f"<extra>{label}</extra>",
            )  # fmt: skip
    for row, which in _labelled(rows, chosen):
        figure.add_annotation(
            x=np.log10(row.intensity), y=np.log10(row.flops / row.cpu / 1e9), text=KERNELS[row.kernel].title,
            showarrow=False, yshift=-14 if which == "lowest" else 14, font={"size": 12},
            xanchor={"leftmost": "left", "rightmost": "right"}.get(which, "center"),
        )  # fmt: skip
    frame(figure, "operational intensity, FLOPs per byte")
    figure.update_xaxes(type="log", rangemode="normal", exponentformat="power", dtick=1)
    figure.update_yaxes(type="log", exponentformat="power", dtick=1, title="GFLOP/s")
    figure.update_layout(height=400)
    return figure


def _roofs(peaks: Peaks, row: Row | None) -> list[tuple[str, float, str]]:
    """Return (name, bytes/s, dash) of the roofs to draw, one per bandwidth."""
    ends = [(peaks.streams[0][0], "dot"), (peaks.streams[-1][0], "dot")]
    found = {}
    for working_set, dash in ([(row.working_set, "solid")] if row else []) + ends:
        name = " in ".join(filter(None, (units.size(working_set), peaks.level(working_set))))
        found.setdefault(peaks.bandwidth(working_set), (name, dash))
    return [(name, bandwidth, dash) for bandwidth, (name, dash) in found.items()]


def _labelled(rows: list[Row], chosen: str) -> list[tuple[Row, str]]:
    """Return the kernels to label in the picture, with their positions: the chosen kernel and the extreme ones."""
    timed = [row for row in rows if row.cpu]
    ends = {
        "rightmost": max(timed, key=lambda row: row.intensity),
        "leftmost": min(timed, key=lambda row: row.intensity),
        "highest": max(timed, key=lambda row: row.flops / row.cpu),
        "lowest": min(timed, key=lambda row: row.flops / row.cpu),
    } if timed else {}  # fmt: skip
    named = {row.kernel: (row, "chosen") for row in timed if row.kernel == chosen}
    for where, row in ends.items():
        named.setdefault(row.kernel, (row, where))
    return [*named.values()]


def _reached(report: Report, row: Row, which: str) -> str:
    peaks = report.gpu if which == "gpu" else report.cpu
    return f"{units.percent(roof_share(row, peaks, which))} of its roof"
