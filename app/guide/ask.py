"""Questions to start from: choosing one makes its two runs and shows the answer above them."""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app.guide.questions import QUESTIONS, Question, find_question
from app.session import background, pins, session
from app.settings import chosen
from experiments.runs.record import Run


class ChosenQuestion(NamedTuple):
    """The question chosen last: its serial number, its experiment's key, and how many pins it replaced."""

    number: int
    key: str
    unpinned: int


def menu(key: str = "question") -> None:
    """Offer the questions. Choosing one sets all controls, runs the experiment, and compares it with its reference."""
    st.menu_button(
        "Try a question", QUESTIONS, key=key, icon=":material/psychology_alt:", width="stretch",
        format_func=lambda question: question.asks, on_click=_try, args=(key,),
        help="Sets all controls, runs the experiment, and pins the run it is compared with. Replaces your pinned runs.",
    )  # fmt: skip


def _try(key: str) -> None:
    question: Question = st.session_state[key]
    chosen.put(question.experiment)
    st.session_state.update(complaint="", axis=question.axis)
    reference = background.ask_soon(question.reference, "question")
    folder = str(reference.folder) if reference.folder else None
    unpinned = len({*pins.names()} - {Path(folder or "").name})
    pins.only(folder)
    number = 1 + (st.session_state.chosen_question.number if "chosen_question" in st.session_state else 0)
    st.session_state.chosen_question = ChosenQuestion(number, question.experiment.key(), unpinned)
    session.start(question.experiment)


def show_answer(run: Run) -> None:
    """Show the answer to the question that belongs to this run, and how many pins its comparison replaced."""
    if question := find_question(run.experiment):
        choice = st.session_state.get("chosen_question")
        gone = choice.unpinned if choice and choice.key == run.experiment.key() else 0
        made_way = f" {gone} pinned run{'s' * (gone != 1)} replaced for this comparison." if gone else ""
        with st.container(key="answer"):
            st.info(f"**{question.asks}** {question.finds}{made_way}", icon=":material/psychology_alt:")


def answered_question() -> int:
    """Return the serial number of the question whose answer is on the page; 0 if there is none."""
    state = st.session_state
    choice = state.get("chosen_question")
    there = choice and not state.get("job") and state.asked.key() == choice.key
    return choice.number if there else 0
