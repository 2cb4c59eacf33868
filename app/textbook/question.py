"""A question of the textbook: asked, answered, explained, and asked again with new numbers."""

import random
from collections import Counter
from typing import Any, NamedTuple

import streamlit as st

from app.session import poll
from app.textbook import memory
from experiments.wording import units
from lessons import progress, returning
from lessons.chapters import Chapter
from lessons.progress import Answer
from lessons.quiz import Item

SEEDS = 10**6
BADGES = {
    "predict": ":orange-badge[:material/psychology: Predict]",
    "again": ":orange-badge[:material/replay: Again]",
    "quiz": "",
}


class Given(NamedTuple):
    """A guess, and the reader's confidence in it: 0, 1 or 2."""

    guess: Any
    sure: int


def ask(chapter: Chapter, item: Item, place: str) -> bool:
    """Draw a question, or the reader's answer to it; return True if it has been answered."""
    state, key = st.session_state, f"{place}-{chapter.name}-{item.name}"
    answers = memory.document().of(chapter.name, item.name, place)
    last = answers[-1] if answers and returning.fits(item, answers[-1]) else None
    if last and not state.get(f"anew-{key}"):
        with st.container(border=True, key=f"item-{key}"):
            explain(chapter, item, last, place)
            more = len(item.all_parameters()) > 1
            st.button(
                "Ask again" + (", another case" if more else ""), key=f"other-{key}", type="tertiary",
                on_click=state.__setitem__, args=(f"anew-{key}", True),
            )  # fmt: skip
        return True
    seed = state.dice + (place == "quiz")
    fresh = item.prediction(seed) if place == "predict" else item.parameters(seed)
    parameters = returning.new_parameters(item, answers, seed) if last else fresh
    with st.container(border=True, key=f"item-{key}"):
        if given := draw(item, parameters, key, place):
            record_answer(chapter, item, parameters, given, place)
            state.pop(f"anew-{key}", None)
            st.rerun()
    return False


def draw(item: Item, parameters: dict, key: str, place: str) -> Given | None:
    """Draw a question with the widgets for a guess, revealing nothing; return the guess once it is submitted."""
    if BADGES[place]:
        st.markdown(BADGES[place])
    st.markdown(item.question(parameters))
    with st.form(f"form-{key}", border=False, enter_to_submit=False):
        if item.choices:
            says = {choice.key: choice.says for choice in item.choices}
            order = random.Random(f"{st.session_state.dice} {key}").sample(list(says), len(says))
            guess = st.radio("Your answer", order, index=None, format_func=says.get, key=f"choice-{key}")
        else:
            label = f"Your answer, {item.unit}" if item.unit else "Your answer"
            guess = st.number_input(label, value=None, format="%g", key=f"number-{key}", width=220)
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"send-{key}"):
            st.markdown("That is my answer, and I am", width="content")
            sent = [st.form_submit_button(word, key=f"sure-{n}-{key}") for n, word in enumerate(progress.SURE)]
    if not any(sent):
        return None
    if guess is None:
        st.caption("Choose an answer first." if item.choices else "Enter a number first.")
        return None
    return Given(guess, sent.index(True))


def record_answer(chapter: Chapter, item: Item, parameters: dict, given: Given, place: str) -> None:
    """Record a new answer, and count it in the poll if it is this reader's first."""
    right = item.right(given.guess, chapter.golden.answer(item.name, parameters))
    if not memory.document().of(chapter.name, item.name):
        said = given.guess if item.choices else ""  # whatever numbers were drawn
        poll.count((chapter.name, item.name), (said, right, given.sure))
    memory.record(chapter.name, item.name, parameters, given.guess, given.sure, right, place)


def explain(chapter: Chapter, item: Item, given: Answer, place: str) -> None:
    """Draw the question with the reader's answer, the right answer, and the explanation."""
    if BADGES[place]:
        st.markdown(BADGES[place])
    st.markdown(item.question(given.parameters))
    answer = chapter.golden.answer(item.name, given.parameters)
    right = item.right(given.guess, answer)
    badge = ":green-badge[:material/check: Right]" if right else ":red-badge[:material/close: Not quite]"
    if item.choices:
        told = item.choice(given.guess).says + ("" if right else f" {item.choice(given.guess).but}")
        st.markdown(f"{badge} You said: {told}")
        if not right:
            st.markdown(f"The right answer: **{item.choice(answer).says}**")
    else:
        said = f"{badge} You said {units.number(given.guess)} {item.unit_for(given.guess)}".rstrip()
        told = f"; the simulator says **{units.number(answer)}** {item.unit_for(answer)}".rstrip()
        st.markdown(f"{said}{'' if item.starts_with_answer(given.parameters, answer) else told}.")
    st.markdown(item.explanation(given.parameters, answer))
    st.markdown(f":small[{progress.MEANING[right, given.sure]}]")
    if counts := poll.tally((chapter.name, item.name)):
        st.caption(_others(counts, given.guess if item.choices else "", right))


def _others(counts: Counter, said: str, right: bool) -> str:
    """Return a sentence on how many first answers were right, among all readers and among those that were sure.

    After a wrong choice, it adds how many chose the same.
    """

    def many(fits) -> int:
        return sum(number for answer, number in counts.items() if fits(*answer))

    known, alike = many(lambda _, right, __: right), many(lambda other, _, __: other == said)
    told = f"Of {counts.total()} first answers here, {known} {'was' if known == 1 else 'were'} right"
    if certain := many(lambda _, __, sure: sure == 2):
        told += f" ({many(lambda _, right, sure: right and sure == 2)} of the {certain} who were sure)"
    return f"{told}." if right or not said else f"{told}, and {alike} gave the same answer."
