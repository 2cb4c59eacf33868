"""Questions: ten that lead through what the workbench shows, and one about each of several algorithms.

The reader predicts the answer to a question, then its experiment runs, and the page shows the answer.
"""

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from app.browser.text import escape_markdown
from app.comparison import changes
from app.guide import verdicts
from app.guide.questions import QUESTIONS, Question, find_question, question_of
from app.session import background, pins, session
from app.settings import chosen
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.wording import naming


class ChosenQuestion(NamedTuple):
    """The question that was run last: its serial number, and its experiment's key.

    `unpinned` is the number of the reader's pins that it replaced, and `pinned` the name of the run that it pinned, or
    "" if there is none.
    """

    number: int
    key: str
    unpinned: int
    pinned: str


def path() -> None:
    """Show the reader's verdict on each question, with the score, and offer all questions and the next one."""
    with st.container(key="path", gap="xsmall"):
        st.html(f"<b>{len(QUESTIONS)} questions</b>: {verdicts.score() or 'predict, then see'}")
        with st.container(key="squares", horizontal=True, gap=None, wrap=False):
            for n, question in enumerate(QUESTIONS, 1):
                name = f"Question {n}, {verdicts.in_words(question)}: {question.asks}"
                st.button(  # style.css shows the name as a tooltip: with `help`, Streamlit would draw each button twice
                    f"**{verdicts.mark(question) or n}** :gray[{name}]", key=f"square-{n}", width="stretch",
                    on_click=_open, args=(question,),
                )  # fmt: skip
        following("path-next")
        if of_method := question_of(st.session_state.algorithm):
            st.button(
                of_method.asks, key="method-question", icon=":material/psychology_alt:", width="stretch",
                on_click=_open, args=(of_method,), help="A question about the chosen algorithm.",
            )  # fmt: skip


def following(key: str) -> None:
    """Draw the button for the first question whose answer the reader has not seen, if there is one."""
    for n, question in enumerate(QUESTIONS, 1):
        if not verdicts.has_seen(question):
            st.button(
                f"{n}. {question.asks}", key=key, icon=":material/arrow_forward:", width="stretch", on_click=_open,
                args=(question,),
            )  # fmt: skip
            return


def menu(key: str) -> None:
    """Offer the questions in a menu, for screens too small for a list; the chosen algorithm's own question comes
    first.
    """
    of_method = question_of(st.session_state.algorithm)
    st.menu_button(
        "Try a question", [of_method, *QUESTIONS] if of_method else QUESTIONS, key=key,
        icon=":material/psychology_alt:", width="stretch",
        format_func=lambda question: question.asks, on_click=lambda: _open(st.session_state[key]),
        help="Predict the answer, then see it: sets all controls, runs the experiment, and pins the run it is compared "
        "with. Replaces your pinned runs.",
    )  # fmt: skip


def close() -> None:
    """Remove the open question from the page."""
    st.session_state.question_open = None


def show_question() -> None:
    """Ask the open question, if there is one and no other run has been started since."""
    question = _question()
    if question is None:
        return
    with st.container(key="open-question", border=True, gap="small"):
        number = f"{QUESTIONS.index(question) + 1}. " if question in QUESTIONS else ""
        st.markdown(f"**{number}{question.asks}**")
        show_basis(question.reference, question.experiment)
        with st.container(horizontal=True, gap="small"):
            for n, option in enumerate(question.options):
                st.button(option, key=f"predicted-{n}", on_click=_try, args=(question, n))
            st.button("Just show me", key="just-show", type="tertiary", on_click=_try, args=(question,))
            st.button("Not now", key="not-this", type="tertiary", on_click=close)


def show_basis(reference: Experiment, experiment: Experiment) -> None:
    """Say which run a prediction starts from, and what changes. If the run on the page is another one, say how it
    differs.
    """
    named = ("algorithm", "compression", "workload", "workers", "network")  # or in the words below
    more = [changes.setting(reference, name, value) for name, value in reference.flat().items() if name not in named]
    start = [naming.title(reference), naming.team(reference), naming.network(reference.network), *more]
    shown = session.run_on_page()
    other = ""
    if shown and shown.experiment != reference:
        other = (
            f" The page below still shows {naming.title(shown.experiment)}"
            f"{_apart(reference, shown.experiment)}. Once you answer, the run in question takes its place."
        )
    st.caption(
        f"Starts from: {escape_markdown(', '.join(start))}. "
        f"What changes: {escape_markdown(', '.join(changes.between(reference, experiment)))}.{escape_markdown(other)}"
    )


def _apart(reference: Experiment, shown: Experiment) -> str:
    """Return the settings in which the run on the page differs from the reference, each after a comma, such as ", 16
    workers".

    Return "" if the algorithms differ.
    """
    if shown.algorithm != reference.algorithm:
        return ""
    return "".join(f", {change}" for change in changes.apart(reference, shown))


def find_answer(experiment: Experiment) -> Question | None:
    """Return the question that this experiment answers, if the reader has predicted the answer or asked for it."""
    question = find_question(experiment)
    return question if question and verdicts.has_seen(question) else None


def is_beside_the_question(before: Experiment, now: Experiment) -> bool:
    """Return True if `now` answers a question, but not a question that compares it with `before`."""
    question = find_answer(now)
    return question is not None and before != question.reference


def show_answer(run: Run) -> None:
    """Show the answer to the question that belongs to this run, and say how many pins its comparison replaced."""
    if question := find_answer(run.experiment):
        choice = st.session_state.get("chosen_question")
        gone = choice.unpinned if choice and choice.key == run.experiment.key() else 0
        made_way = f" {gone} pinned run{'s' * (gone != 1)} replaced for this comparison." if gone else ""
        verdict = verdicts.BADGES[verdicts.document()[question.query]]
        score = f" So far: {verdicts.score()}." if verdict else ""
        with st.container(key="answer", gap="xsmall"):
            st.info(f"{verdict}**{question.asks}** {question.finds}{made_way}{score}", icon=":material/psychology_alt:")
            following("answer-next")


def number_to_show() -> int:
    """Return the serial number of the question on the page, or of the answer. Return 0 if there is neither."""
    state = st.session_state
    if _question():
        return state.question_number
    choice = state.get("chosen_question")
    there = choice and not state.get("job") and state.asked.key() == choice.key
    return choice.number if there else 0


def _question() -> Question | None:
    question, over = st.session_state.get("question_open") or (None, None)
    return question if over == st.session_state.get("asked") else None


def _next_number() -> int:
    st.session_state.question_number = 1 + st.session_state.get("question_number", 0)
    return st.session_state.question_number


def _open(question: Question) -> None:
    """Ask this question, and compute its runs while the reader thinks."""
    st.session_state.question_open = question, st.session_state.get("asked")
    st.session_state.card = None  # one question at a time
    _next_number()
    background.ask(question.reference, "question")
    background.ask(question.experiment, "question-run")


def _try(question: Question, said: int | None = None) -> None:
    """Set all controls to the question's run, start it, and pin only the run that it is compared with."""
    close()
    verdicts.record(question, None if said is None else said == question.right)
    chosen.put(question.experiment)
    st.session_state.update(complaint="", axis=question.axis)
    reference = background.ask_soon(question.reference, "question")
    folder = str(reference.folder) if reference.folder else None
    pinned, last = Path(folder or "").name, st.session_state.get("chosen_question")
    unpinned = len({*pins.names()} - {pinned, last.pinned if last else ""})  # that of the last question is no reader's
    pins.only(folder)
    st.session_state.chosen_question = ChosenQuestion(_next_number(), question.experiment.key(), unpinned, pinned)
    session.start(question.experiment)
