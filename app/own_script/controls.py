"""The controls of a script: its text, and the machines it runs on."""

from collections.abc import Callable
from importlib.util import decode_source
from typing import Any

import streamlit as st

from experiments.jobs import script
from experiments.specification.catalogue import PRESETS
from experiments.specification.script import ScriptExperiment

FIRST = "ddp.py"  # of the examples
UNNAMED = "script.py"
MOST_RANKS = 256  # most ranks on the page; a process with more takes minutes
PER_NODE = (1, 2, 4, 8)
MOST_FACTOR, FACTOR = 100.0, 4.0  # of a slow rank
KEPT = {"persist_state": "session"}


def begin(shown: ScriptExperiment | None) -> None:
    """Set the controls to the script on the page or, without one, to the first example, unless they are already set."""
    state = st.session_state
    if "script_text" in state:
        return
    state.script_file = shown.name if shown else FIRST
    state.script_text = shown.source if shown else script.example(FIRST)
    e = shown or ScriptExperiment("", FIRST)
    (rank, factor), *_ = [*e.slow_ranks.items(), (None, FACTOR)]
    state.update(
        script_ranks=min(e.ranks, MOST_RANKS), script_steps=e.steps, script_slow=rank, script_factor=float(factor),
        script_network=e.network if e.network in PRESETS["network"] else "10GbE",
        script_device=e.device if e.device in PRESETS["device"] else "laptop",
        script_per_node=e.per_node if e.per_node in PER_NODE else 1,
    )  # fmt: skip


def choose(run: Callable[[], None]) -> None:
    """Draw the controls, with a button that calls run(); `settings` returns their values."""
    left, right = st.columns([3, 2], gap="medium")
    with left, st.container(key="script"):
        _choose_text()
    with right:
        _choose_machines()
        st.button("Run", type="primary", icon=":material/play_arrow:", key="run-script", on_click=run)


def settings() -> dict[str, Any]:
    """Return the settings of the machines, under their names in a ScriptExperiment."""
    state = st.session_state
    slow = state.script_slow
    return {
        "ranks": state.script_ranks,
        "network": state.script_network,
        "per_node": state.script_per_node,
        "device": state.script_device,
        "slow": "" if slow is None else f"{slow}:{state.script_factor:g}",
        "steps": state.script_steps,
    }


def _choose_text() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Start from an example", [*script.EXAMPLES], key="script_example", index=None,
            format_func=lambda name: f"{name}: {script.EXAMPLES[name]}", placeholder="Choose one of four",
            on_change=_take_example,
        )  # fmt: skip
        with st.popover("Upload a file", icon=":material/upload_file:"):
            st.file_uploader("A Python file", key="script_upload", max_upload_size=1, on_change=_take_upload)
    st.text_area(
        st.session_state.script_file, key="script_text", height=330, max_chars=script.MOST_BYTES, **KEPT,
        on_change=_name_anew,
        help="An unmodified torchrun script. It runs on this machine, with your permissions.",
    )  # fmt: skip


def _choose_machines() -> None:
    left, right = st.columns(2)
    left.number_input(
        "Ranks", 1, MOST_RANKS, key="script_ranks", **KEPT, help="Simulated processes, one per rank, as under torchrun."
    )
    right.number_input(
        "Steps", 1, 1_000_000, key="script_steps", placeholder="all", **KEPT,
        help="End each rank after this many steps of its optimizer. Leave it empty to run the script to its end.",
    )  # fmt: skip
    left, right = st.columns(2)
    left.selectbox("Network", PRESETS["network"], key="script_network", **KEPT)
    right.selectbox("Device of a rank", PRESETS["device"], key="script_device", **KEPT)
    left, right = st.columns(2)
    slow = left.number_input(
        "Slow rank", 0, MOST_RANKS - 1, key="script_slow", placeholder="none", **KEPT,
        help="Number of the rank that computes more slowly. Leave it empty for none.",
    )  # fmt: skip
    right.number_input(
        "Times slower", 1.0, MOST_FACTOR, step=1.0, format="%g", key="script_factor", disabled=slow is None, **KEPT,
        help="The factor by which computing takes longer on the slow rank.",
    )  # fmt: skip
    st.segmented_control(
        "Ranks per node", PER_NODE, key="script_per_node", required=True, **KEPT,
        help="Ranks of a node share its NICs, and reach each other over the link within it.",
    )  # fmt: skip


def _take_example() -> None:
    state = st.session_state
    if name := state.script_example:
        state.script_file, state.script_text = name, script.example(name)


def _name_anew() -> None:
    """Drop an example's name once the example's first line is gone, i.e. once another script has been pasted
    over it.
    """
    state = st.session_state
    if state.script_file in script.EXAMPLES and not state.get("script_upload"):
        first = script.example(state.script_file).partition("\n")[0]
        if state.script_text.strip().partition("\n")[0] != first:
            state.script_file, state.script_example = UNNAMED, None


def _take_upload() -> None:
    state = st.session_state
    if file := state.script_upload:
        state.script_file, state.script_text = file.name[-60:], _decode(file.getvalue())
        state.script_example = None


def _decode(source: bytes) -> str:
    """Return the text of a Python file; bytes that are invalid in its declared encoding are replaced."""
    try:
        return decode_source(source)
    except (UnicodeDecodeError, SyntaxError):
        return source.decode("utf-8", "replace")
