"""The side bar: what to run. Four controls at first; all settings on request."""

from functools import partial

import streamlit as st

from app.browser import address
from app.browser.text import escape_markdown, mark_glossary_terms, sentence
from app.comparison import changes
from app.guide import ask, predict
from app.session import session
from app.settings import all_settings, best_rate, chosen, faults, feasible, fitting, helps, trouble
from experiments.specification.catalogue import ALGORITHMS, choice_label
from experiments.specification.experiment import Experiment

FEW = ("algorithm", "workload", "table", "net", "workers", "network", "slow", "jitter", "pause", "crash")
"""Settings of the first controls, and those that every run's title shows."""

SAID = 3  # hidden settings that are named while the switch is off


AT_ONCE = (
    "Start short simulated runs as soon as a setting changes; the previous run stays visible in grey. Long runs, "
    "runs on real processes, and all runs while others wait for this machine need **Run**. When off, every run "
    "waits for **Run**, and you can predict its outcome first."
)


def choose() -> tuple[Experiment | None, str]:
    """Draw the controls; return (their experiment, ""), or (the experiment or None, why it cannot run)."""
    fitting.settle()
    best_rate.settle()
    actions = st.container(key="actions")
    _algorithm()
    if chosen.alone() and st.session_state.workers == 1:
        st.caption("One worker: a sequential method trains on one.")
    else:
        all_settings.draw_settings("workers")
    all_settings.draw_settings("network")
    trouble.choose(st.session_state.get("cluster", "simulated"))
    ask.menu()
    with st.container(horizontal=True, gap="medium"):
        opened = st.toggle("All settings", key="all_settings", persist_state="session")
        at_once = address.toggle("Run at once", "at_once", True, help=AT_ONCE)
    rate_place, fault_place = all_settings.draw() if opened else (None, None)
    experiment, refusal, waits = None, "", ""
    try:
        experiment = chosen.experiment()
        chosen.write_address(experiment)
        refusal = feasible.refusal(experiment)
    except ValueError as error:
        refusal = str(error)
    if experiment and not refusal:
        waits = session.follow(experiment, at_once)
    session.await_first_curve()
    with actions:
        _actions(experiment, refusal)
        if waits:
            st.markdown(f":small[:material/hourglass_empty: {waits}]")
        shown = session.run_on_page()
        for note in experiment.notes if experiment and not refusal else ():
            if not shown or note not in shown.notes:  # otherwise the page says it above the run's figures
                st.markdown(f":small[:material/info: {escape_markdown(note)}]")
    if opened:
        with rate_place:
            best_rate.offer(experiment)
        with fault_place:
            faults.choose(experiment)
    elif experiment and (more := beyond(experiment)):
        said = [changes.setting(experiment, name, experiment.flat()[name]) for name in more[:SAID]]
        left = f" and {len(more) - SAID} more" if len(more) > SAID else ""
        st.caption(f"Changed in All settings: {escape_markdown(', '.join(said))}{left}.")
    return experiment, refusal


def beyond(experiment: Experiment) -> list[str]:
    """Return the names of the settings that differ from their defaults and are not among the first controls."""
    return [name for name in experiment.flat() if name not in FEW]


def _algorithm() -> None:
    """Draw the choice of algorithm, and the idea of the chosen one."""
    state = st.session_state
    if state.get("family") not in (None, ALGORITHMS[state.algorithm].family):  # a link or a lesson chose another one
        state.family = None
    family = state.get("family")
    names = [name for name, entry in ALGORITHMS.items() if family in (None, entry.family)]
    st.selectbox(
        "Algorithm", names, key="algorithm", on_change=chosen.settle, args=("algorithm",), persist_state="session",
        format_func=partial(choice_label, ALGORITHMS), help=helps.text(Experiment, "algorithm"),
    )  # fmt: skip
    st.markdown(f":small[{mark_glossary_terms(ALGORITHMS[state.algorithm].idea)}]", unsafe_allow_html=True)


def _actions(experiment: Experiment | None, refusal: str) -> None:
    """Draw the buttons; if the experiment cannot run, draw the reason and the nearest one that can."""
    state = st.session_state
    with st.container(horizontal=True, gap="xsmall", wrap=False):
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", key="run",
            disabled=bool(refusal), on_click=run, args=(experiment,),
        )  # fmt: skip
        st.button("Stop", key="stop", disabled=state.get("job") is None, on_click=session.stop)
        st.button(
            "Reset", key="reset", on_click=_reset,
            help="Resets all settings to their defaults, and runs. Keeps pinned runs and the axis.",
        )  # fmt: skip
    if refusal:
        st.markdown(f":small[:material/block: {sentence(refusal)}]")
        if mend := feasible.mend(chosen.values(), _changed()):
            st.button(
                mend.label, key="mend", icon=":material/build:", width="stretch", on_click=state.__setitem__, args=mend
            )


def bar(experiment: Experiment | None, refusal: str) -> None:
    """Draw the bar at the foot of a phone's page, where the side bar is a drawer; style.css hides it elsewhere."""
    mend = feasible.mend(chosen.values(), _changed()) if refusal else None
    with st.container(key="phone-bar", horizontal=True, gap="small", wrap=False):
        ask.menu("question-phone")
        if mend:
            st.button(mend.label, key="mend-phone", width="stretch", on_click=st.session_state.__setitem__, args=mend)
        st.button(
            "Run", type="primary", icon=":material/play_arrow:", width="stretch", key="run-phone",
            disabled=bool(refusal), on_click=run, args=(experiment,),
        )  # fmt: skip


def _changed() -> list[str]:
    """Return the settings that differ from those of the run on the page."""
    state = st.session_state
    before = chosen.widget_values(state.asked) if state.get("asked") else {}
    return [name for name, value in chosen.values().items() if before.get(name, value) != value]


def run(experiment: Experiment) -> None:
    predict.seal(experiment)
    session.start(experiment)


def _reset() -> None:
    chosen.put(Experiment())
    session.start(Experiment())
