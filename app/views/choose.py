"""The left side: what to run."""

from __future__ import annotations

from functools import partial

import streamlit as st

import algorithms
import workloads
from algorithms import compression
from app import controls, runs
from experiments.experiment import Experiment, coding_settings
from experiments.run import ONLY_SIMULATED

FIRST = 2  # of an algorithm's settings, before the others are folded away


def choose() -> tuple[Experiment | None, str]:
    """Draw all controls; (the experiment they say, ""), or (None, why there is no such experiment)."""
    st.selectbox(
        "Algorithm", algorithms.names(), key="algorithm", format_func=lambda name: f"{name} · {_family(name)}",
        on_change=controls.settle, args=("algorithm",), persist_state="session",
        help="Grouped by family, in teaching order. Type to search.",
    )  # fmt: skip
    st.markdown(f":small[{algorithms.idea(algorithms.find(st.session_state.algorithm))}]")
    actions = st.container(key="actions")
    _controls()
    try:
        experiment, refusal = controls.chosen(), ""
        controls.write_address(experiment)
    except ValueError as error:
        experiment, refusal = None, str(error)
    with actions:
        _actions(experiment)
    return experiment, refusal


def _actions(experiment: Experiment | None) -> None:
    busy = st.session_state.get("job") is not None
    with st.container(horizontal=True, gap="xsmall", wrap=False):
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", key="run",
            disabled=experiment is None, on_click=runs.start, args=(experiment,),
        )  # fmt: skip
        st.button("Stop", key="stop", disabled=not busy, on_click=runs.stop)
        st.button("Reset", key="reset", on_click=_reset, help="All settings back to their defaults.")


def _reset() -> None:
    controls.put(Experiment())
    runs.start(Experiment())


def _controls() -> None:
    state = st.session_state
    algorithm, workload = algorithms.find(state.algorithm).Settings, workloads.find(state.workload).Settings
    knobs = [controls.control(algorithm, name) for name in algorithm.model_fields]
    delays, others = [k for k in knobs if k.delay], [k for k in knobs if not k.delay]
    data = [controls.control(workload, name) for name in workload.model_fields if name not in algorithm.model_fields]

    def own(*names: str) -> None:
        for name in names:
            real = state.get("cluster", "simulated") != "simulated"
            settle = partial(controls.settle, name) if name in ("compression", "workload") else None
            controls.draw(controls.control(Experiment, name), real and name in ONLY_SIMULATED, settle)

    own("workers", "batch")
    _heading("Delay", "What makes information late: links that take time, and what the algorithm itself puts off.")
    own(*controls.DELAY)
    for knob in delays:
        controls.draw(knob)
    _heading(f"Settings of {state.algorithm}")
    for knob in others[:FIRST]:
        controls.draw(knob)
    if others[FIRST:]:
        with st.expander(f"More of {state.algorithm}"):
            for knob in others[FIRST:]:
                controls.draw(knob)
    if controls.compresses(state.algorithm):
        own("compression")
        _compression(state.compression)
    _heading("Work")
    own("workload")
    for knob in data[:1]:
        controls.draw(knob)
    own(*controls.BUDGET)
    with st.expander("More: data, other budgets, precision"):
        for knob in data[1:]:
            controls.draw(knob)
        own(*controls.MORE_BUDGET)
    _heading("Cluster")
    own(*controls.PLACE)
    with st.expander("More: pauses, crashes, links"):
        own(*controls.MORE)


def _compression(name: str) -> None:
    """What is to be known about this compression, and its settings."""
    if name != "none":
        st.markdown(f":small[{algorithms.idea(compression.find(name))}]")
    coding = coding_settings(name)
    for knob in coding.model_fields:
        controls.draw(controls.control(coding, knob))


def _heading(text: str, help: str | None = None) -> None:
    st.markdown(f"### {text}", help=help, anchors=False)


def _family(name: str) -> str:
    return algorithms.family(name).replace("_", " ")
