"""The ten questions: a path through what the workbench shows. Each asks for a prediction, runs, and answers."""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app.guide.questions import QUESTIONS, Question, find_question
from app.session import background, pins, session
from app.settings import chosen
from experiments.runs.record import Run

MARKS = {True: "✓", False: "✗"}
SPOKEN = {True: "predicted right", False: "predicted wrong", None: "open"}


class ChosenQuestion(NamedTuple):
    """The question run last: its serial number, its experiment's key, and how many pins it replaced."""

    number: int
    key: str
    unpinned: int


def path() -> None:
    """Show which questions the reader has predicted, with the score, and offer the next one and all others."""
    verdicts = _verdicts()
    each = [verdicts.get(question.query) for question in QUESTIONS]
    steps = "".join(f"<i>{MARKS.get(right, n)}</i>" for n, right in enumerate(each, 1))
    spoken = ", ".join(f"{n} {SPOKEN[right]}" for n, right in enumerate(each, 1))
    score = _score() or "predict, then see"
    with st.container(key="path", gap="xsmall"):
        st.html(
            f'<b>{len(QUESTIONS)} questions</b>: {score}<div class="path" role="img" aria-label="Questions: {spoken}.">'
            f"{steps}</div>"
        )
        following(verdicts, "path-next")
        menu()


def following(verdicts: dict[str, bool], key: str) -> None:
    """Draw the button for the first question without a prediction, if there is one."""
    for n, question in enumerate(QUESTIONS):
        if question.query not in verdicts:
            st.button(
                f"{n + 1}. {question.asks}", key=key, icon=":material/arrow_forward:", width="stretch", on_click=_open,
                args=(question,),
            )  # fmt: skip
            return


def menu(key: str = "question") -> None:
    """Offer all questions."""
    st.menu_button(
        "Try a question", QUESTIONS, key=key, icon=":material/psychology_alt:", width="stretch",
        format_func=lambda question: question.asks, on_click=lambda: _open(st.session_state[key]),
        help="Predict the answer, then see it: sets all controls, runs the experiment, and pins the run it is compared "
        "with. Replaces your pinned runs.",
    )  # fmt: skip


def record(question: Question, right: bool) -> None:
    """Count the first prediction for this question."""
    st.session_state.verdicts = {question.query: right, **_verdicts()}


def close() -> None:
    """Take the open question off the page."""
    st.session_state.question_open = None


def show_question() -> None:
    """Ask the open question, if there is one and no other run was started since."""
    question = _question()
    if question is None:
        return
    with st.container(key="open-question", border=True, gap="small"):
        st.markdown(f"**{QUESTIONS.index(question) + 1}. {question.asks}**")
        with st.container(horizontal=True, gap="small"):
            for n, option in enumerate(question.options):
                st.button(option, key=f"predicted-{n}", on_click=_try, args=(question, n))
            st.button("Just show me", key="just-show", type="tertiary", on_click=_try, args=(question,))
            st.button("Not now", key="not-this", type="tertiary", on_click=close)


def show_answer(run: Run) -> None:
    """Show the answer to the question that belongs to this run, and how many pins its comparison replaced."""
    if question := find_question(run.experiment):
        choice, verdicts = st.session_state.get("chosen_question"), _verdicts()
        gone = choice.unpinned if choice and choice.key == run.experiment.key() else 0
        made_way = f" {gone} pinned run{'s' * (gone != 1)} replaced for this comparison." if gone else ""
        badge = {True: ":green-badge[:material/check: Right] ", False: ":orange-badge[Not quite] "}
        verdict = badge.get(verdicts.get(question.query), "")
        score = f" So far: {_score()}." if verdict else ""
        with st.container(key="answer", gap="xsmall"):
            st.info(f"{verdict}**{question.asks}** {question.finds}{made_way}{score}", icon=":material/psychology_alt:")
            if verdicts:
                following(verdicts, "answer-next")


def number_to_show() -> int:
    """Return a serial number of the question or answer on the page, which changes with each; 0 if there is none."""
    state = st.session_state
    if _question():
        return state.question_number
    choice = state.get("chosen_question")
    there = choice and not state.get("job") and state.asked.key() == choice.key
    return choice.number if there else 0


def _verdicts() -> dict[str, bool]:
    """Return whether the reader's predictions were right, by the question's query."""
    return st.session_state.get("verdicts", {})


def _score() -> str:
    """Return how many predictions were right: "2 of 3 predicted right"; "" if there are none."""
    verdicts = _verdicts()
    return f"{sum(verdicts.values())} of {len(verdicts)} predicted right" if verdicts else ""


def _question() -> Question | None:
    question, over = st.session_state.get("question_open") or (None, None)
    return question if over == st.session_state.get("asked") else None


def _next_number() -> int:
    st.session_state.question_number = 1 + st.session_state.get("question_number", 0)
    return st.session_state.question_number


def _open(question: Question) -> None:
    """Ask this question; its runs are computed meanwhile."""
    st.session_state.question_open = question, st.session_state.get("asked")
    st.session_state.card = None  # one question at a time
    _next_number()
    background.ask(question.reference, "question")
    background.ask(question.experiment, "question-run")


def _try(question: Question, said: int | None = None) -> None:
    """Set all controls to the question's run, start it, and pin only the run that it is compared with."""
    close()
    if said is not None:
        record(question, said == question.right)
    chosen.put(question.experiment)
    st.session_state.update(complaint="", axis=question.axis)
    reference = background.ask_soon(question.reference, "question")
    folder = str(reference.folder) if reference.folder else None
    unpinned = len({*pins.names()} - {Path(folder or "").name})
    pins.only(folder)
    st.session_state.chosen_question = ChosenQuestion(_next_number(), question.experiment.key(), unpinned)
    session.start(question.experiment)
