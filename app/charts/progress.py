"""Charts that compare runs: time per step, speed-up, efficiency, staleness."""

import numpy as np
import plotly.graph_objects as go

from app.charts.frame import frame
from experiments.runs.scaling import Scaling, scaling
from experiments.viewer import curves, palette
from experiments.viewer.pictures import HEIGHT, Shown, unit
from experiments.wording import units


def scalings(shown: list[Shown], loss: float | None) -> dict[str, list[Scaling]]:
    """Return, for each quantity, how it scales with the number of workers. The first quantity is samples per second or
    a time.

    Include the time to a held-out `loss`, unless a run had reached it at the start.
    """
    runs, target = [one.runs for one in shown], shown[0].run.experiment.target_loss
    by = "samples per second" if target is None else f"time to a loss of {target:g}"
    found = {by: scaling(runs, ["workers"])}
    if loss is not None and all(curves.time_to_loss(run, loss) for some in runs for run in some):
        found[f"time to a held-out loss of {units.loss(loss)}"] = scaling(
            runs, ["workers"], lambda run: 1 / curves.time_to_loss(run, loss)
        )
    return found


def step_time(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """Return a figure of the seconds per step: ideally constant in weak scaling, falling in strong scaling."""
    (found, *_) = scalings(shown, None).values()
    scale, word = unit("seconds", max((one.step_seconds or 0.0 for one in found), default=0.0) or 1.0)
    times = [one.step_seconds and one.step_seconds / scale for one in found]
    figure = go.Figure()
    _line(figure, workers, "time per step", times, palette.RUNS[0], f"%{{y:.3g}} {word} a step")
    _finish(figure, f"{word} per step")
    return figure.update_yaxes(rangemode="tozero")


def speed_up(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """Return a figure of the speed-up relative to the fewest workers, both in samples/s and in the time to a held-out
    `loss`.

    With a target loss, the time to it replaces samples/s.
    """
    figure = go.Figure()
    figure.add_scatter(
        x=[str(n) for n in workers], y=(np.array(workers) / min(workers)).astype(np.float32), mode="lines",
        name="ideal", hoverinfo="skip", line={"color": palette.MUTED, "width": 1.5, "dash": "dot"},
    )  # fmt: skip
    for (name, found), look in zip(scalings(shown, loss).items(), palette.RUNS, strict=False):
        _line(figure, workers, name, [one.speed_up for one in found], look, "%{y:.3g} times as fast")
    _finish(figure, "times as fast")
    return figure.update_yaxes(type="log", dtick=np.log10(2), exponentformat="none")


def efficiency(shown: list[Shown], workers: tuple[int, ...], loss: float | None) -> go.Figure:
    """Return a figure of the efficiency: the speed-up as a percentage of the ideal one."""
    figure = go.Figure()
    for (name, found), look in zip(scalings(shown, loss).items(), palette.RUNS, strict=False):
        shares = [one.efficiency and 100 * one.efficiency for one in found]
        _line(figure, workers, name, shares, look, "%{y:.3g} % of the ideal")
    _finish(figure, "% of the ideal")
    return figure.update_yaxes(rangemode="tozero")


def _line(figure: go.Figure, workers: tuple[int, ...], name: str, values: list[float | None], look, hover: str) -> None:
    """Add a line with the number of workers on the x axis. Values that are unknown leave gaps in it."""
    figure.add_scatter(
        x=[str(n) for n in workers], y=np.array(values, np.float32), mode="lines+markers", name=name,
        line={"color": look.colour, "width": 2.2, "dash": look.dash}, marker={"symbol": look.symbol, "size": 8},
        hovertemplate=f"{hover}<extra>{name}</extra>",
    )  # fmt: skip


def _finish(figure: go.Figure, title: str) -> None:
    """Add the frame and the axis titles to the figure."""
    frame(figure, "workers")
    figure.update_layout(height=HEIGHT, hovermode="x unified")
    figure.update_xaxes(type="category", rangemode="normal")
    figure.update_yaxes(title_text=title)


def staleness(shown: list[Shown]) -> go.Figure:
    """Return a figure of the distribution of staleness: the age, in updates, of the parameters that each update was
    computed from.
    """
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
