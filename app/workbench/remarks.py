"""What a reader must know before reading a run's charts: how it ended, and its notes."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.browser.text import sentence
from app.comparison import changes
from app.session import session
from app.settings import chosen
from experiments.runs import divergence, ending
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording import naming

NOTES = 4  # remarks shown before the others are folded away


def show(run: Run, missing: list[str]) -> None:
    why = _told(run, run.error)
    if run.status == "diverged":
        _diverged(run)
    elif run.status == "failed" and (planned := ending.explain_planned_loss(run)):
        st.info(f"{planned} The part recorded until then is shown.", icon=":material/power_off:")
    elif run.status == "failed":
        st.error(f"**Failed.** {why} The part recorded until then is shown.", icon=":material/error:")
    elif stopped := ending.explain_stop(run):
        st.warning(f"**{stopped}** The part recorded until then is shown.", icon=":material/stop_circle:")
    if more := st.session_state.get("remark", "").removeprefix(run.error).strip():
        st.warning(sentence(more), icon=":material/folder_off:")
    for name in missing:
        st.warning(f"The pinned run {name} is no longer on this machine.", icon=":material/folder_off:")
    show_notes(run.experiment, run.notes[:NOTES])
    if len(run.notes) > NOTES:
        with st.expander(f"{len(run.notes) - NOTES} more remarks"):
            for note in run.notes[NOTES:50]:
                st.caption(_told(run, note))


def show_notes(experiment: Experiment, notes: Sequence[str]) -> None:
    """Show notes on a run of `experiment`; those that are known before it ends keep their place."""
    for note in notes:
        st.caption(f":material/info: {sentence(naming.readable(experiment, note))}")


def _told(run: Run, text: str) -> str:
    """Return a run's message as a sentence. Ranks and times are written as in the pictures, such as "worker 3" and "40
    ms".
    """
    return sentence(naming.readable(run.experiment, text))


def _diverged(run: Run) -> None:
    """Explain which change made the run diverge, and why, with a button that undoes it."""
    why = _told(run, run.error)
    with st.container(gap="xsmall", key="diverged"):
        told = f"**Diverged.** {why} A red line in the timeline marks the moment; the run is shown beyond it."
        st.error(told, icon=":material/trending_up:")
        if undo := divergence.cause(run.experiment).undo:
            ((name, value),) = undo.items()
            st.button(
                f"Run with {changes.setting(run.experiment.change(**{name: value}), name, value)}", key="undo",
                icon=":material/undo:", on_click=_undo, args=(run.experiment, name, value),
                help="Resets this setting to its default, and runs again.",
            )  # fmt: skip


def _undo(experiment: Experiment, name: str, value: Any) -> None:
    without = experiment.change(**{name: value})
    chosen.put(without)
    session.start(without)
