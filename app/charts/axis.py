"""The x axis of the curves. The reader chooses it, or the page does if two runs differ only in time."""

from collections.abc import Hashable

import streamlit as st

from app.browser import address
from app.session import sharing
from experiments.viewer import curves

ALONG = {"step": "step", "samples": "samples", "seconds": "time", "bytes": "sent"}  # the unit is at the axis


def choose() -> tuple[str, bool]:
    """Draw the switches for the axis and the loss scale; return (axis, True if the loss is on a logarithmic scale)."""
    state = st.session_state
    address.keep("axis", curves.AXES, "step")
    turn = _turn()
    key = f"axis-{turn}"
    state.setdefault(key, state.axis)
    st.segmented_control(
        "Curves against", curves.AXES, key=key, required=True, label_visibility="collapsed",
        format_func=ALONG.get, on_change=_take, args=(turn, key),
    )  # fmt: skip
    address.toggle("Log", "log", help="The loss on a logarithmic scale.")
    return state.axis, state.log


def selected_axis() -> tuple[str, bool]:
    """Return (axis, True if the loss is on a logarithmic scale), even before the switches are drawn, as when a race
    opens.
    """
    address.keep("axis", curves.AXES, "step")
    address.hold("log", False, address.switch)
    return st.session_state.axis, st.session_state.log


def now() -> str:
    """Return the axis of the page's curves, even before its switches are drawn."""
    return st.session_state.get("axis", "step")


def is_the_readers() -> bool:
    """Return True once the reader has chosen the axis; from then on, the page no longer changes it."""
    return bool(st.session_state.get("axis_chosen"))


def settle(pair: Hashable | None) -> None:
    """Plot curves against time for this `pair` of runs. Without a pair, return to steps if the page had chosen time.

    A reader's own choice is not overruled.
    """
    state = st.session_state
    if is_the_readers():
        state.axis_for = None
    elif pair is not None:
        if now() == "step":
            state.axis, state.axis_for = "seconds", pair
    elif state.get("axis_for"):
        state.axis, state.axis_for = "step", None


def is_settled_for(pair: Hashable) -> bool:
    """Return True if the curves are plotted against time because of this pair of runs."""
    return st.session_state.get("axis_for") == pair


def initial_zoom(axis: str) -> tuple[float, float] | None:
    """Return the range of this axis in the link that opened the session, or None."""
    asked = st.session_state.setdefault("link_axis", axis)
    return sharing.view(st.session_state.get("asked")).zoom if asked == axis else None


def _turn() -> int:
    """Return the axis switch's serial number, which changes whenever the page, not the reader, chooses the axis.

    The browser requests each frame of a run in progress, and reports the positions of its switches with it. It may not
    have received the new axis yet, and would restore the old one, so reports about a switch that no longer exists are
    ignored.
    """
    state = st.session_state
    turn, axis = state.get("axis_turn", (0, state.axis))
    state.axis_turn = turn + (axis != state.axis), state.axis
    return state.axis_turn[0]


def _take(turn: int, key: str) -> None:
    state = st.session_state
    if turn == state.axis_turn[0]:
        state.axis = state[key]
        state.axis_turn = turn, state.axis  # the same switch, which keeps the focus
        state.axis_chosen = True
