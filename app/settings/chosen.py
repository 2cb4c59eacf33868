"""The settings that the widgets show, stored in the session under the names of the experiment's settings.

The page's address is therefore the experiment's own query, the one that the command line prints and reads. Choosing an
algorithm, workload or cluster applies its own defaults.
"""

from typing import Any
from urllib.parse import parse_qsl, urlencode

import streamlit as st

from app.settings import feasible
from app.settings.controls import owners
from experiments.specification import catalogue, this_machine
from experiments.specification.experiment import (
    OWN,
    PAGE,
    REAL_DEFAULTS,
    Experiment,
    coding_settings,
    default_rate,
    real_defaults,
    starting_point,
)


def read_address(again: bool = False) -> str:
    """Load the settings from the page's address; return a sentence if they are invalid, else "".

    It is read once per session, and `again` after the reader has gone back or forward.
    """
    if "algorithm" in st.session_state and not again:
        return ""
    try:
        given = {name: st.query_params[name] for name in st.query_params if name not in PAGE}
        put(Experiment.from_query(urlencode(given)))
    except ValueError as error:
        put(Experiment())
        return str(error)
    return ""


def leave_address() -> None:
    """Remove the experiment from the address on pages that do not show it."""
    for name in st.session_state.pop("written", ()):
        st.query_params.pop(name, None)


def write_address(experiment: Experiment) -> None:
    """Set the page's address to the experiment's link; the default experiment has no parameters."""
    wanted = dict(parse_qsl(experiment.query(), keep_blank_values=True)) if experiment != Experiment() else {}
    st.session_state.written = [*wanted]
    there = {name: st.query_params[name] for name in st.query_params if name not in PAGE}
    for name in there.keys() - wanted.keys():
        del st.query_params[name]
    if changed := {name: value for name, value in wanted.items() if there.get(name) != value}:
        st.query_params.update(changed)


def put(experiment: Experiment) -> None:
    st.session_state.update(widget_values(experiment))


def widget_values(experiment: Experiment) -> dict[str, Any]:
    """Return all settings of `experiment`, by name in one flat mapping, as values of widgets."""
    values = {**experiment.model_dump(mode="json"), **experiment.data, **experiment.coding, **experiment.settings}
    names = owners(experiment.algorithm, experiment.compression, experiment.workload)
    return {name: values[name] for name in names}


def algorithm():
    return catalogue.ALGORITHMS[st.session_state["algorithm"]].declaration


def alone() -> bool:
    """Return True if the chosen algorithm trains on one worker only."""
    return algorithm().defaults.get("workers") == 1


def cluster() -> str:
    return st.session_state.get("cluster", "simulated")


def values() -> dict[str, Any]:
    """Return the values of the widgets, by name of the setting."""
    state = st.session_state
    names = owners(state["algorithm"], state["compression"], state["workload"])
    return {name: state[name] for name in names if name in state}


def experiment() -> Experiment:
    """Return the experiment that the widgets describe. Raise ValueError if it is invalid."""
    return Experiment.of(values())


SET_THE_RATE = ("model", "regression")
"""Settings of a workload that the default learning rate depends on."""


def settle(field: str) -> None:
    """Reset settings to the defaults of a newly chosen algorithm, compression, workload, model or loss.

    A new algorithm keeps the reader's workload unless it needs a workload of its own, which is dropped again with the
    algorithm. It keeps the workload's settings, except those that were merely the previous algorithm's defaults. It
    keeps workers and steps, unless it has its own defaults for them, and the compression, unless there is nothing to
    compress. A pipeline that replaces another one keeps the number of micro-batches, if it can. The learning rate is
    looked up for the new combination.
    """
    state = st.session_state
    if field == "compression":
        state.update(coding_settings(state["compression"])().model_dump(mode="json"))
        return
    before, declared = state["workload"], algorithm()
    if field == "algorithm":
        state["workload"] = _workload()
    workload = state["workload"]
    data = {} if field in SET_THE_RATE else _beginning(state["algorithm"], workload)
    if field == "algorithm":
        if workload == before:
            begun = [_beginning(name, workload) for name in catalogue.ALGORITHMS]
            data = {n: value for n, value in data.items() if state.get(n) in [values[n] for values in begun]}
        chunks = _chunks()
        state.update(declared.Settings().model_dump(mode="json"))
        own = declared.defaults
        every = {name for entry in catalogue.ALGORITHMS.values() for name in entry.declaration.defaults}
        for name in every - {"workload"}:
            if name in own or state.get(name) in _beginnings(name):
                state[name] = own.get(name, Experiment.model_fields[name].default)
        if not declared.compresses:
            state["compression"] = "none"
    state.update(data)
    state["learning_rate"] = beginning_rate()
    cuts = field == "algorithm" and chunks and "chunks" in declared.Settings.model_fields
    if cuts and not feasible.why_not({**values(), "chunks": chunks}):
        state["chunks"] = chunks


def settle_workload(before: str | None) -> None:
    """After a change of workload from `before`, apply the defaults of the new workload.

    If no table has been chosen for the workload "table", the page that asks for one opens, and the workload stays.
    """
    state = st.session_state
    if state["workload"] == "table" and not state.get("table") and before:
        state.update(workload=before, wanted="table")
    else:
        settle("workload")


def switch(algorithm: str) -> None:
    """Switch to another algorithm, with its own defaults."""
    st.session_state.algorithm = algorithm
    settle("algorithm")


def _workload() -> str:
    """Return the workload for the newly chosen algorithm: its own, or the workload that the reader had chosen."""
    state, own = st.session_state, algorithm().defaults.get("workload")
    on_page = state["workload"]
    if own:
        if own != on_page:
            state["moved"] = on_page, own
        return own
    before, after = state.pop("moved", (on_page, on_page))
    return before if on_page == after else on_page


def _chunks() -> int | None:
    """Return the number of micro-batches of the pipeline on the page, which the next pipeline keeps if possible."""
    before = st.session_state.get("followed")
    return before[0].settings.get("chunks") if before else None


def beginning_rate() -> float:
    """Return the default learning rate of the chosen algorithm for this workload, model and number of workers."""
    state = st.session_state
    found = default_rate(state["algorithm"], state["workload"], state, state["workers"])
    return found.get("learning_rate", algorithm().Settings().learning_rate)


def settle_cluster(before: str) -> None:
    """After a change of cluster from `before`, set network and device to the new cluster's defaults.

    Other choices stay, and are then emulated; a network or device fitted to this machine becomes a real cluster's own.
    """
    state, fit = st.session_state, this_machine.load()
    for name in REAL_DEFAULTS:
        was, now = _begins(before, name), _begins(state["cluster"], name)
        fitted = now == OWN and fit is not None and state[name] == getattr(fit, name)
        if state[name] == was or fitted:
            state[name] = now


def _begins(cluster: str, name: str) -> Any:
    """Return the default of a field of Experiment on this cluster."""
    return real_defaults(cluster).get(name, Experiment.model_fields[name].default)


def _beginnings(name: str) -> list:
    """Return all defaults of a field of Experiment: the general one, and those of single algorithms."""
    every = [entry.declaration.defaults for entry in catalogue.ALGORITHMS.values()]
    return [Experiment.model_fields[name].default, *(own[name] for own in every if name in own)]


def _beginning(algorithm: str, workload: str) -> dict[str, Any]:
    settings = catalogue.WORKLOADS[workload].module.Settings
    return settings(**starting_point(algorithm, workload)).model_dump(mode="json")
