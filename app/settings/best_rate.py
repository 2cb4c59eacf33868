"""The best learning rate, i.e. the learning rate with the lowest final loss. The page offers it below the widget of the
learning rate.
"""

import streamlit as st

from app.session import background, session
from experiments.runs.summary import code_version
from experiments.specification.experiment import Experiment
from experiments.study import rates

HELP = (
    "The learning rate with the lowest final held-out loss, averaged over three seeds, or over eight where three "
    "cannot tell two rates apart; lower and higher rates are worse. Compare methods each at its own best rate, or "
    "you only compare their defaults. On the command line: --learning-rate best"
)


def settle() -> None:
    """After a search, and before the controls are drawn, set the learning rate that was found."""
    if rate := st.session_state.pop("rate_found", None):
        st.session_state.learning_rate = rate


def known_rate(experiment: Experiment) -> float | None:
    """Return the experiment's best learning rate, or None if it is unknown.

    It comes from the table, or from a search that has finished.
    """
    rate = rates.rate_in_table(experiment)
    if rate is None and (folder := rates.job_spec(experiment).find_result(session.ROOT, code_version())):
        rate = rates.read(folder)  # cached after the first read
    return rate


def offer(experiment: Experiment | None) -> None:
    """Show the experiment's best learning rate if it is known, else a button that searches for it, and its progress."""
    state = st.session_state
    if experiment is None:
        return
    spec = rates.job_spec(experiment)
    if state.get("rate_wanted") == spec.key():
        folder = background.fetch(spec, "Trying learning rates, at least three seeds each.", "rate")
        if folder:
            state.rate_wanted, state.rate_found = None, rates.read(folder)
            st.rerun()
        return
    known = known_rate(experiment)
    if known == experiment.settings["learning_rate"]:
        st.markdown(":green-badge[:material/check: At its best rate]", help=HELP)
        return
    st.button(
        f"Use its best rate: {known:g}" if known else "Find its best rate", key="best-rate", type="tertiary",
        icon=":material/target:", help=HELP, on_click=_take, args=(known, spec.key()),
    )  # fmt: skip


def _take(rate: float | None, wanted: str) -> None:
    st.session_state.rate_found, st.session_state.rate_wanted = rate, None if rate else wanted
