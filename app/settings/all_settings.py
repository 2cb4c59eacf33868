"""All settings: everything beyond the first controls of the sidebar."""

from functools import partial

import streamlit as st

from app.browser.text import escape_markdown, mark_glossary_terms
from app.settings import chosen, controls, fitting, widgets
from experiments.execution.admission import REFUSED
from experiments.specification.catalogue import ALGORITHMS, COMPRESSIONS
from experiments.specification.experiment import Experiment, coding_settings, settings_of

FIRST = 2  # settings of an algorithm that are shown before the others are folded away
EXACTNESS = {"BIT": "bit for bit", "RND": "up to rounding"}
LATE = {
    "delay": ("Gradients late by a fixed lag", "delayed"),
    "period": ("Models averaged once per period", "local_sgd"),
}
"""Other settings that delay information: a label, and an algorithm with this setting for readers to switch to."""


def draw_settings(*names: str) -> None:
    """Draw the experiment's own settings with these names."""
    cluster = st.session_state.get("cluster", "simulated")
    for name in names:
        settle = {
            "compression": partial(chosen.settle, name),
            "workload": partial(chosen.settle_workload, st.session_state.get(name)),
            "cluster": partial(chosen.settle_cluster, cluster),
        }
        widgets.draw(controls.control(Experiment, name), REFUSED.get(cluster, {}).get(name, ""), settle.get(name))


def draw_main_settings() -> None:
    """Draw the settings that make the chosen algorithm what it is."""
    for knob in controls.main(chosen.algorithm().Settings):
        widgets.draw(knob)


def draw():
    """Draw all settings; return the placeholders for the best learning rate and for the faults of ranks."""
    _special_cases()
    return _controls()


def _special_cases() -> None:
    """Show which algorithms the chosen algorithm equals in special cases."""
    if claims := chosen.algorithm().equivalences:
        told = [f"- {escape_markdown(one.claim)}: {EXACTNESS[one.exactness]}" for one in claims]
        st.markdown(
            f":small[Special case:] :green-badge[:material/equal: {escape_markdown(claims[0].claim)}]",
            help="What it equals in special cases, verified by tests:\n\n" + "\n".join(told),
        )


def _controls():
    """Draw all settings; return the placeholders for the best learning rate and for the faults of ranks."""
    state = st.session_state
    algorithm, _, workload = settings_of(state.algorithm, state.compression, state.workload)
    main = controls.main(algorithm)  # these are right below the algorithm
    knobs = [one for name in algorithm.model_fields if (one := controls.control(algorithm, name)) not in main]
    rate = chosen.beginning_rate()
    knobs = [controls.reaching(k, rate) if k.name == "learning_rate" else k for k in knobs]
    delays, others = [k for k in knobs if k.postpones], [k for k in knobs if not k.postpones]
    owners = controls.owners(state.algorithm, state.compression, state.workload)
    data = [controls.control(workload, name) for name, owner in owners.items() if owner is workload]

    draw_settings("batch")
    _heading("Delay", "What delays information: slow links, and delays that the algorithm itself introduces.")
    draw_settings(*controls.DELAY)
    for knob in delays:
        widgets.draw(knob)
    with st.container(gap="xxsmall", key="other-delays"):
        for field, (words, name) in LATE.items():
            if field not in algorithm.model_fields:
                other = ALGORITHMS[name].title
                st.button(
                    f"{words}: {other}", key=f"late-{field}", type="tertiary", icon=":material/arrow_forward:",
                    on_click=chosen.switch, args=(name,),
                    help="Other kinds of delay: switch to an algorithm that has one.",
                )  # fmt: skip
    title = ALGORITHMS[state.algorithm].title
    _heading(f"Settings of {title}")
    for knob in others[:FIRST]:
        widgets.draw(knob)
        if knob.name == "learning_rate":
            best = st.container()
    if others[FIRST:]:
        with _folded(f"More of {title}", "algorithm") as more:
            for knob in others[FIRST:] if more.open else ():
                widgets.draw(knob)
    if chosen.algorithm().compresses:
        draw_settings("compression")
        _compression(state.compression)
    _heading("Work")
    draw_settings("workload")
    for knob in data[:1]:
        _draw(knob)
    draw_settings(*controls.BUDGET)
    with _folded("More: data, other budgets, precision", "work") as more:
        for knob in data[1:] if more.open else ():
            _draw(knob)
        draw_settings(*(controls.MORE_BUDGET if more.open else ()))
    _heading("Cluster")
    draw_settings(*(name for name in controls.PLACE if name != "network"))
    fitting.offer()
    ranks = st.container()
    with _folded("More: links, and faults as text", "cluster") as more:
        draw_settings(*(controls.MORE if more.open else ()))
    return best, ranks


def _folded(label: str, of: str):
    """Return a container for settings that few readers change: drawn only while open, but always in force."""
    return st.expander(label, key=f"more-{of}", on_change="rerun")


def _compression(name: str) -> None:
    """Draw the description of this compression, and its settings."""
    if name != "none":
        st.markdown(f":small[{mark_glossary_terms(COMPRESSIONS[name].idea)}]", unsafe_allow_html=True)
    coding = coding_settings(name)
    for knob in coding.model_fields:
        widgets.draw(controls.control(coding, knob))


def _draw(knob: controls.Control) -> None:
    """Draw a setting of the workload. Some of them change the default learning rate."""
    rated = knob.name in chosen.SET_THE_RATE
    widgets.draw(knob, on_change=partial(chosen.settle, knob.name) if rated else None)


def _heading(text: str, help: str | None = None) -> None:
    st.markdown(f"### {text}", help=help, anchors=False)
