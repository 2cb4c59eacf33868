"""The left side: what to run."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app import controls, session
from app.text import escaped
from app.views import ask, best_rate, faults, fitting, predict
from experiments.catalogue import ALGORITHMS, COMPRESSIONS, FAMILIES, called
from experiments.conditions import REFUSED
from experiments.experiment import Experiment, coding_settings, settings_of

FIRST = 2  # of an algorithm's settings, before the others are folded away
EXACTNESS = {"BIT": "bit for bit", "RND": "to rounding"}
LATE = {
    "delay": ("Gradients late by a fixed lag", "delayed"),
    "period": ("An average once in a period", "local_sgd"),
}
"""The other meanings of delay, by the name of the setting: offered where an algorithm has no such setting."""


def choose() -> tuple[Experiment | None, str]:
    """Draw all controls; return (their experiment, ""), or (None, why there is no such experiment)."""
    fitting.settle()
    best_rate.settle()
    ask.menu()
    _algorithm()
    actions = st.container(key="actions")
    rate_place, fault_place = _controls()
    try:
        experiment, refusal = controls.chosen(), ""
        controls.write_address(experiment)
    except ValueError as error:
        experiment, refusal = None, str(error)
    with actions:
        _actions(experiment)
        for note in experiment.notes if experiment else ():
            st.markdown(f":small[:material/info: {escaped(note)}]")
    with rate_place:
        best_rate.offer(experiment)
    with fault_place:
        faults.choose(experiment)
    return experiment, refusal


def _algorithm() -> None:
    """Draw the choice of algorithm, its idea, and what it becomes in limit cases."""
    state = st.session_state
    families = dict.fromkeys(entry.family for entry in ALGORITHMS.values())
    if state.get("family") not in (None, ALGORITHMS[state.algorithm].family):  # a link or a lesson brought another one
        state.family = None
    st.selectbox(
        "Family", families, None, FAMILIES.get, key="family", placeholder="All families", on_change=_settle_family,
        persist_state="session", help="Only algorithms of this family, in teaching order.",
    )  # fmt: skip
    family = state.family
    names = [name for name, entry in ALGORITHMS.items() if family in (None, entry.family)]
    st.selectbox(
        "Algorithm", names, key="algorithm", on_change=controls.settle, args=("algorithm",), persist_state="session",
        format_func=partial(called, ALGORITHMS), help="In teaching order. Type to search, by name or by file.",
    )  # fmt: skip
    chosen = ALGORITHMS[state.algorithm]
    st.markdown(f":small[{chosen.idea}]")
    if claims := chosen.declaration.equivalences:
        more = f" :green-badge[and {len(claims) - 1} more]" if claims[1:] else ""
        told = [f"- {escaped(one.claim)}: {EXACTNESS[one.exactness]}" for one in claims]
        st.markdown(
            f":green-badge[:material/equal: {escaped(claims[0].claim)}]{more}",
            help="What it becomes in limit cases, as the tests hold it to:\n\n" + "\n".join(told),
        )


def _settle_family() -> None:
    state = st.session_state
    if state.family and ALGORITHMS[state.algorithm].family != state.family:
        _switch(next(name for name, entry in ALGORITHMS.items() if entry.family == state.family))


def _switch(algorithm: str) -> None:
    """Choose another algorithm, with its own defaults."""
    st.session_state.algorithm = algorithm
    controls.settle("algorithm")


def _actions(experiment: Experiment | None) -> None:
    busy = st.session_state.get("job") is not None
    with st.container(horizontal=True, gap="xsmall", wrap=False):
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", key="run",
            disabled=experiment is None, on_click=_run, args=(experiment,),
        )  # fmt: skip
        st.button("Stop", key="stop", disabled=not busy, on_click=session.stop)
        st.button("Reset", key="reset", on_click=_reset, help="All settings back to their defaults.")


def _run(experiment: Experiment) -> None:
    predict.seal(experiment)
    session.start(experiment)


def _reset() -> None:
    controls.put(Experiment())
    session.start(Experiment())


def _controls():
    """Draw everything but the algorithm; return the places for the best rate, and for the faults of ranks."""
    state = st.session_state
    algorithm, _, workload = settings_of(state.algorithm, state.compression, state.workload)
    cluster = state.get("cluster", "simulated")
    knobs = [controls.control(algorithm, name) for name in algorithm.model_fields]
    rate = controls.beginning_rate()
    knobs = [controls.reaching(k, rate) if k.name == "learning_rate" else k for k in knobs]
    delays, others = [k for k in knobs if k.delay], [k for k in knobs if not k.delay]
    owners = controls.owners(state.algorithm, state.compression, state.workload)
    data = [controls.control(workload, name) for name, owner in owners.items() if owner is workload]

    def own(*names: str) -> None:
        for name in names:
            settle = {
                "compression": partial(controls.settle, name),
                "workload": partial(controls.settle, name),
                "cluster": partial(controls.settle_cluster, cluster),
            }
            controls.draw(controls.control(Experiment, name), REFUSED.get(cluster, {}).get(name, ""), settle.get(name))

    if controls.alone(state.algorithm) and state.workers == 1:
        st.caption("One worker: a sequential method trains on one.")
    else:
        own("workers")
    own("batch")
    _heading("Delay", "What makes information late: links that take time, and what the algorithm itself puts off.")
    own(*controls.DELAY)
    for knob in delays:
        controls.draw(knob)
    with st.container(gap="xxsmall"):
        for field, (words, name) in LATE.items():
            if field not in algorithm.model_fields:
                st.button(
                    f"{words}: {name}", key=f"late-{field}", type="tertiary", icon=":material/arrow_forward:",
                    on_click=_switch, args=(name,), help="Another meaning of delay: go to the algorithm that has it.",
                )  # fmt: skip
    title = ALGORITHMS[state.algorithm].title
    _heading(f"Settings of {title}")
    for knob in others[:FIRST]:
        controls.draw(knob)
        if knob.name == "learning_rate":
            best = st.container()
    if others[FIRST:]:
        with _folded(f"More of {title}", "algorithm") as more:
            for knob in others[FIRST:] if more.open else ():
                controls.draw(knob)
    if controls.compresses(state.algorithm):
        own("compression")
        _compression(state.compression)
    _heading("Work")
    own("workload")
    for knob in data[:1]:
        controls.draw(knob, on_change=partial(controls.settle, "model") if knob.name == "model" else None)
    own(*controls.BUDGET)
    with _folded("More: data, other budgets, precision", "work") as more:
        for knob in data[1:] if more.open else ():
            controls.draw(knob)
        own(*(controls.MORE_BUDGET if more.open else ()))
    _heading("Cluster")
    own(*controls.PLACE)
    fitting.offer()
    ranks = st.container()
    with _folded("More: links, and faults as text", "cluster") as more:
        own(*(controls.MORE if more.open else ()))
    return best, ranks


def _folded(label: str, of: str):
    """Return a place for settings that few change: drawn while it is open, and in force all the time."""
    return st.expander(label, key=f"more-{of}", on_change="rerun")


def _compression(name: str) -> None:
    """Draw the idea of this compression, and its settings."""
    if name != "none":
        st.markdown(f":small[{COMPRESSIONS[name].idea}]")
    coding = coding_settings(name)
    for knob in coding.model_fields:
        controls.draw(controls.control(coding, knob))


def _heading(text: str, help: str | None = None) -> None:
    st.markdown(f"### {text}", help=help, anchors=False)
