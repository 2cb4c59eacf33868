"""Questions to begin with: choosing one makes its two runs and shows its finding above them."""

from __future__ import annotations

import streamlit as st

from app import background, chosen, session
from app.questions import QUESTIONS, Question, asked
from experiments.runs.record import Run

PATIENCE = 3.5  # s in which the run that a question compares with may come; in a long queue it goes without


def menu(key: str = "question") -> None:
    """Offer the questions. Choosing one sets all controls, runs it, and shows it over the run it is compared with."""
    st.menu_button(
        "Try a question", QUESTIONS, key=key, icon=":material/psychology_alt:", width="stretch",
        format_func=lambda question: question.asks, on_click=_try, args=(key,),
        help="Sets all controls, runs them, and pins the run that the question compares with, in place of other pins.",
    )  # fmt: skip


def _try(key: str) -> None:
    question: Question = st.session_state[key]
    chosen.put(question.experiment)
    st.session_state.update(complaint="", axis=question.axis)
    reference = background.ask(question.reference, "question")
    if reference.active:
        reference = session.wait(question.reference.key(), PATIENCE)
    session.pin_only(str(reference.folder) if reference.folder else None)
    session.start(question.experiment)


def told(run: Run) -> None:
    """Show what the question finds that this run answers."""
    if question := asked(run.experiment):
        st.info(f"**{question.asks}** {question.finds}", icon=":material/psychology_alt:")
