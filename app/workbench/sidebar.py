"""The sidebar, where the reader chooses what to run. At first it has four controls and the main settings of the
algorithm; a switch adds all other settings.
"""

import streamlit as st

from app.browser import address
from app.browser.text import escape_markdown, sentence
from app.comparison import changes
from app.guide import ask, predict
from app.session import session
from app.settings import algorithm, all_settings, best_rate, chosen, controls, faults, feasible, fitting, trouble
from app.workbench import head
from experiments.specification.experiment import Experiment

FEW = ("algorithm", "workload", "table", "net", "workers", "network", "slow", "jitter", "pause", "crash")
"""Settings that are among the first controls of every algorithm, or that every run's title shows."""

SAID = 3  # hidden settings that are named while the switch is off


AT_ONCE = (
    "Start short simulated runs as soon as a setting changes; the previous run stays visible in grey. Long runs, "
    "runs on real processes, and all runs while others wait for this machine need **Run**. When off, every run "
    "waits for **Run**, and you can predict its outcome first."
)


def choose() -> tuple[Experiment | None, str]:
    """Draw the controls. Return (their experiment, ""), or (the experiment or None, the reason why it cannot run)."""
    fitting.settle()
    best_rate.settle()
    actions = st.container(key="actions")
    algorithm.choose()
    all_settings.draw_main_settings()
    if chosen.alone() and st.session_state.workers == 1:
        st.caption("One worker, because the method is sequential.")
    else:
        all_settings.draw_settings("workers")
    all_settings.draw_settings("network")
    trouble.choose(st.session_state.get("cluster", "simulated"))
    ask.path()
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
        if experiment and not refusal:
            with st.container(key="run-does"):
                st.markdown(f":small[{_what_run_does(experiment, waits)}]")
        shown = session.run_on_page()
        asked = st.session_state.asked if st.session_state.get("job") else None
        for note in experiment.notes if experiment and not refusal and experiment != asked else ():
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
    main = [one.name for one in controls.main(experiment.method.Settings)]
    return [name for name in experiment.flat() if name not in FEW and name not in main]


def _actions(experiment: Experiment | None, refusal: str) -> None:
    """Draw the buttons. If the experiment cannot run, draw the reason and the nearest experiment that can."""
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


def _what_run_does(experiment: Experiment, waits: str) -> str:
    """Return, in words, what the *Run* button would do now. `waits` is why a changed setting has not started a run by
    itself.
    """
    if waits:
        return f":material/hourglass_empty: {waits}"
    if st.session_state.get("job"):
        return ":material/hourglass_top: In progress. **Stop** ends it and keeps its curve."
    shown = session.run_on_page()
    if shown and shown.experiment == experiment and not experiment.is_repeatable:
        return ":material/replay: These settings have run. **Run** measures them again: real times vary."
    if shown and shown.experiment == experiment:
        return ":material/check: These settings have run. Change one to see what happens."
    return f":material/play_arrow: **Run** starts {head.headline(experiment)}."


def bar(experiment: Experiment | None, refusal: str) -> None:
    """Draw the bar at the foot of a phone's page, where the sidebar is a drawer; style.css hides it elsewhere."""
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
    """Return the settings whose values differ from those of the run on the page."""
    state = st.session_state
    before = chosen.widget_values(state.asked) if state.get("asked") else {}
    return [name for name, value in chosen.values().items() if before.get(name, value) != value]


def run(experiment: Experiment) -> None:
    predict.seal(experiment)
    session.start(experiment)


def _reset() -> None:
    chosen.put(Experiment())
    session.start(Experiment())
