"""Run a torch.distributed script on simulated machines, if the owner of this machine allows it."""

from pathlib import Path

import streamlit as st

from app.browser import looks
from app.browser.text import sentence
from app.charts.pictures import heading
from app.own_script import controls, result
from app.session import background, session
from experiments.jobs import script

PLACE = "script"
OFF = (
    "You can also run your own torch.distributed script on simulated machines, on your own machine: set "
    f"{script.SETTING}=1 before you start the workbench. This is off here, because it executes your file. "
    "On the command line: `lockstep script train.py --ranks 8`"
)


def is_wanted() -> bool:
    """Return True if scripts are allowed here, or if the address names a script's stored run."""
    return script.is_allowed() or bool(st.query_params.get(PLACE))


def show() -> None:
    """Show the controls, the run in progress, and the last run."""
    name = st.query_params.get(PLACE, "")
    run = result.find(name)
    if script.is_allowed():
        heading("Run a torch.distributed script", "On simulated machines: its numbers are real, its time is virtual.")
        controls.begin(run.experiment if run else None)
        controls.choose(_start)
        if (finished := _follow()) is None:
            return  # the result on the page is the previous script's
        name = finished or name
    else:
        st.caption(OFF)
    if not name:
        return
    if (run := result.find(name)) is None:
        st.warning(
            "This version of Lockstep has stored no such run on this machine; run the script again.",
            icon=":material/folder_off:",
        )
        return
    with st.container(key="script-result"):
        result.show(run, name, result.find(st.session_state.get("script_before", "")))


def _start() -> None:
    """Store the job that the controls describe, or a message on why they do not describe a valid one."""
    state = st.session_state
    state.script_trouble, state.script_work = "", None
    state.pop(f"{session.owner()}/{PLACE}", None)  # even if it is the same work again
    try:
        state.script_work = script.job_spec(state.script_text, state.script_file, controls.settings())
    except ValueError as error:
        state.script_trouble = str(error)


def _follow() -> str | None:
    """Show the work's progress, and return the name of its run once that is stored.

    Until then, return "". Return None if the work ended without a run.
    """
    state = st.session_state
    if trouble := state.get("script_trouble"):
        st.error(sentence(trouble), icon=":material/block:")
    if not (work := state.get("script_work")):
        return ""
    ranks = work.values["ranks"]
    waiting = f"{work.values['path']} runs on {ranks} simulated rank{'s' * (ranks != 1)}."
    folder: Path | None = background.fetch(work, waiting, PLACE, on_request=True)
    if folder is None:
        if not background.ask(work, PLACE).active:
            return None
        looks.fade("script-result", opacity=0.45, grey=True)
        return ""
    state.script_work = None
    if folder.name != st.query_params.get(PLACE):
        state.script_before = st.query_params.get(PLACE, "")
        st.query_params[PLACE] = folder.name
    return folder.name
