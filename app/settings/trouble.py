"""Chips that inject common faults into a cluster. The settings behind the chips give the details."""

import streamlit as st

from app.session import session
from app.settings import chosen
from experiments.execution.admission import REFUSED
from experiments.specification.catalogue import ALGORITHMS

CALM = "calm"
WORDS = {CALM: "None", "slow": "One slow worker", "jitter": "Jitter", "pause": "A pause", "crash": "Lose a worker"}
"""The label of each chip, by the setting of an experiment that it sets."""

SLOWER = 4  # times
UNTIL = 1.5  # the end of a pause, as a multiple of its start
JITTER = "cloud"
QUIET = ("", "none")
MIDDLE = 0.04  # s: half of the default experiment's run, if none is on the page


def choose(cluster: str) -> None:
    """Draw the chips. The chip of a fault is on if the experiment has the fault."""
    state = st.session_state
    there = [name for name in WORDS if name != CALM and state.setdefault(name, QUIET[name == "jitter"]) not in QUIET]
    refused = REFUSED.get(cluster, {})
    state.troubles = there or [CALM]
    st.pills(
        "Trouble", [name for name in WORDS if name not in refused or name in there], selection_mode="multi",
        format_func=WORDS.get, key="troubles", on_change=_change, args=(there,), help=_help(refused),
    )  # fmt: skip


def _help(refused: dict[str, str]) -> str:
    lines = [
        f"Faults to inject. A slow worker takes {SLOWER} times as long to compute, jitter randomises the time of every "
        "step, a pause stops a worker for a while, and a lost worker fails halfway through the run.",
        "Or touch the timeline: drag the end of a box, drop a turtle or a bolt on a lane, or click a worker's name.",
        *(f"Not on this cluster: {WORDS[name].lower()}, since {why}" for name, why in refused.items() if name in WORDS),
    ]
    return "\n\n".join(lines)


def _change(before: list[str]) -> None:
    """Switch the settings of the clicked chips on or off."""
    state = st.session_state
    chosen = [] if CALM in state.troubles and before else [name for name in state.troubles if name != CALM]
    for name in {*chosen} ^ {*before}:
        state[name] = _begins(name) if name in chosen else QUIET[name == "jitter"]


def _begins(name: str) -> str:
    """Return the initial value of a chip's setting.

    The last worker is slow, the one before it is lost, and the one before that pauses.
    """
    if name == "jitter":
        return JITTER
    first, workers = _servers(), st.session_state["workers"]
    worker = first + max(0, workers - 1 - ("slow", "crash", "pause").index(name))
    half = middle()
    return {
        "slow": f"{worker}:{SLOWER}",
        "pause": f"{worker}:{half:g}-{UNTIL * half:g}",
        "crash": f"{worker}:{half:g}",
    }[name]


def _servers() -> int:
    try:
        return chosen.experiment().servers
    except ValueError:
        declared = ALGORITHMS[st.session_state["algorithm"]].declaration
        return declared.servers(declared.Settings())


def middle() -> float:
    """Return the middle of the run on the page, in s, to two significant digits: a fault there is clearly visible."""
    shown = session.run_on_page()
    return float(f"{shown.summary['seconds'] / 2:.2g}" if shown else 0) or MIDDLE
