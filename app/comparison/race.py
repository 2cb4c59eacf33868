"""A race of two runs: both curves and both timelines on one clock, and a finish line that can be moved."""

import sys

import streamlit as st

from app import charts
from app.browser import address, components
from app.charts import Shown, axis
from app.charts.pictures import HEAD, heading, lines, with_accuracy
from app.charts.words import legend
from app.session import pins, sharing
from experiments.viewer import race

KEY = "race-timeline"


def on() -> bool:
    return st.query_params.get("race") == "1"


def rivals(reference: Shown | None, own: Shown) -> list[Shown]:
    """Return both runs if they can race, else [].

    A race needs a finish: at least one of their runs must have a final held-out loss, and not have diverged.
    """
    return [reference, own] if reference and _finish([reference, own]) is not None else []


def offer(before: Shown | None, pair: list[Shown]) -> None:
    """Draw the Race button. Without a `pair`, a click pins the previous run, `before`, and then races."""
    if not pair and before is None:
        return
    full = before is not None and not pair and len(pins.names()) >= pins.MOST
    with_whom = "the pinned run" if pair else "the previous run"
    if st.button(
        "Race", key="race", icon=":material/sports_score:", disabled=full,
        help="Unpin a run first." if full else f"This run and {with_whom} on one clock, up to the same loss.",
    ):  # fmt: skip
        if not pair:
            pins.add(before.folder)
        st.query_params["race"] = "1"
        st.rerun()


def show(pair: list[Shown]) -> None:
    """Draw the race of two runs: losses with the finish line, accuracies, and both timelines."""
    target = _head(pair)
    legend(pair)
    having = with_accuracy(pair)
    with st.container(key="curves"):
        left, right = st.columns([3, 2], gap="medium") if having else (st.container(), None)
    with left:
        with st.container(height=HEAD, border=False):
            heading(
                "Loss against time", "On a logarithmic scale, so that the finish is visible. Points: held-out loss."
            )
        zoom = axis.initial_zoom("seconds")
        lines(race.picture, pair, race.verdict(pair, target), target, key="loss", zoom=zoom)
    if right:
        with right:
            with st.container(height=HEAD, border=False):
                heading("Held-out accuracy, %")
            lines(charts.accuracy, having, "Held-out accuracy of both against time.", "seconds", zoom=zoom)
    many = any(one.others for one in pair)
    of = " and ".join(dict.fromkeys(f", seed {one.run.experiment.seed}" for one in pair)) if many else ""
    heading(f"Both timelines{of}", "One axis and one clock: press Play to watch both runs and both curves.")
    name = " ".join([*(f"{one.folder}/{one.colour}" for one in pair), str(target), str(len(race.heats(pair)))])
    window = components.requested_window(st.session_state.get(KEY), name)
    components.timeline(_lanes(pair, name, target, window, sharing.view(pair[-1].run.experiment)), key=KEY)


def _finish(pair: list[Shown]) -> float | None:
    """Return the default finish, or None if there is none. It is the highest final held-out loss of the runs that did
    not diverge.
    """
    return race.finish([run for heat in race.heats(pair) for run in heat])


def _head(pair: list[Shown]) -> float:
    """Draw the heading with the adjustable finish line next to it; return the finish."""
    default = _finish(pair)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="race-head"):
        heading("Race", "Ends at this held-out loss. Default: the highest final loss of the runs that did not diverge.")
        address.hold("goal", None, address.number(0.0, sys.float_info.max))
        st.number_input(
            "Finish line: held-out loss", min_value=0.0, value=None, key="goal", format="%.4g", width=220,
            placeholder=f"{default:.4g}", persist_state="session",
        )  # fmt: skip
        if st.button("End the race", key="end-race", icon=":material/close:", type="tertiary"):
            st.query_params.pop("race", None)  # both runs stay on the page
            st.rerun()  # of the whole page: the race is a fragment
    chosen = st.session_state.goal
    return default if chosen is None else chosen


@st.cache_resource(max_entries=16, show_spinner=False)
def _lanes(_pair: list[Shown], name: str, target: float, window, view) -> bytes:
    return race.lanes(_pair, name, target, window, view)
