"""A run under way: its place in the queue, how far it is, and the curves as they grow."""

from __future__ import annotations

import numpy as np
import streamlit as st

from app import charts, components, session
from app.views import pictures, result
from experiments import units
from experiments.jobs.pool import JobState
from experiments.plots import palette
from experiments.plots.canvases import curve
from experiments.plots.pictures import Axis, Picture, Series

EVERY = 0.5  # s between two frames


def show() -> None:
    """Show the page while a run is under way."""
    st.fragment(_frame, run_every=EVERY)()


def _frame() -> None:
    now = session.under_way()
    if now is None:
        st.rerun()
    st.markdown(f"# {result.title(st.session_state.asked)}", anchors=False)
    st.progress(min(max(now.fraction, 0.0), 1.0), text=_words(now))
    with st.container(key="curves"):
        left, right = st.columns([3, 2], gap="medium")
    with left:
        pictures.against("Loss")
        components.curve(_panel(now, "loss"), key="live-loss")
    with right:
        with st.container(height=pictures.HEAD, border=False):
            st.markdown("## Held-out accuracy, %", anchors=False)
        components.curve(_panel(now, "accuracy"), key="live-accuracy")
    st.caption("The timeline, the traffic and the staleness follow when the run is done.")


def _words(now: JobState) -> str:
    if now.status == "queued":
        ahead = now.place - 1
        return f"Waiting: {ahead} run{'s' * (ahead != 1)} ahead of this one." if ahead else "Waiting: this one is next."
    if not len(now.curve.get("loss", ())):
        return "Starting."
    clock = "virtual time" if st.session_state.asked.cluster == "simulated" else "run time"
    done = f"{units.percent(now.fraction)} · " if now.fraction else ""
    return f"{done}{units.seconds(now.seconds)} of {clock} · loss {units.number(float(now.curve['loss'][-1]))}"


def _panel(now: JobState, quantity: str) -> bytes:
    """Draw one canvas: training and held-out loss, or held-out accuracy, against step, samples or time."""
    axis = st.session_state.axis
    axis = "seconds" if axis == "bytes" else axis  # what was sent is only counted at the end
    line = palette.RUNS[0]
    x, along = now.curve.get(axis, np.zeros(0)), now.curve.get("seconds", np.zeros(0))
    tried = now.tried.get("seconds", np.zeros(0))
    tried_x = np.interp(tried, along, x) if len(x) else np.zeros(0)
    y = now.tried.get(quantity, np.zeros(0))[: len(tried_x)] * (100 if quantity == "accuracy" else 1)
    so_far = float(x[-1]) if len(x) else 0.0
    most = so_far or 1.0
    if now.fraction > 0:  # the axis is what has been reached, doubled whenever it is full, up to the whole run
        most = so_far / now.fraction / 2 ** np.floor(np.log2(1 / now.fraction))
    scale, unit = charts.unit(axis, most)
    if quantity == "accuracy":
        series = [Series(tried_x / scale, y, line.colour, symbol=line.symbol, name="accuracy")]
        up = Axis("accuracy", 0.0, 102, "%")
    else:
        loss = now.curve.get("loss", np.zeros(0))
        series = [
            Series(x / scale, loss, line.colour, name="training", key="training"),
            Series(tried_x / scale, y, line.colour, "dot", line.symbol, "held-out", "held-out", width=1),
        ]
        known = np.concatenate([loss, y])
        known = known[np.isfinite(known)]
        up = Axis("loss", 0.0, float(min(known.max(), 4 * known[0])) * 1.08 if len(known) else 1.0)
    picture = Picture(series, charts.along(axis, most / scale, unit), up, growing=True)
    return curve.frame(picture, f"{quantity} of the run under way, at {units.percent(now.fraction)}.")
