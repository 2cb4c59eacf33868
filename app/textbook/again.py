"""Review: questions from all chapters come back with new numbers, those answered confidently but wrongly first."""

from datetime import datetime

import streamlit as st

import lessons
from app.textbook import exam, memory, question
from lessons import progress, returning
from lessons.chapters import Chapter


def show(chapter: Chapter) -> None:
    """Show the questions that are due, one by one, then the button that starts a test."""
    st.markdown("# Review")
    if not exam.under_way():
        _one_by_one()
    exam.show(chapter)


def _one_by_one() -> None:
    """Ask the questions that are due, each once per round, whatever the answer."""
    state = st.session_state
    answers = memory.recorded_answers()
    coming = returning.returns(answers, lessons.CHAPTERS)
    due = returning.due(coming, progress.now())
    done = state.setdefault("round", set())
    left = [one for one in due if (one.chapter, one.item) not in done]
    current = state.get("again")
    st.markdown(_count(due, coming))
    if current is None and left:
        first = left[0]
        item = lessons.chapter(first.chapter).item(first.item)
        asked = [a for a in answers if a.question == (first.chapter, first.item)]
        current = state.again = (
            first.chapter,
            first.item,
            returning.new_parameters(item, asked, state.dice),
            len(asked),
        )
    if current is None:
        if due:
            st.button("Another round", on_click=done.clear, icon=":material/replay:")
        return
    name, asked, parameters, before = current
    chapter = lessons.chapter(name)
    item = chapter.item(asked)
    key = f"again-{name}-{asked}-{before}"
    with st.container(border=True, key=f"item-{key}"):
        st.caption(chapter.title())
        if (name, asked) in done:
            question.explain(chapter, item, memory.document().of(name, asked, "again")[-1], "again")
            more = len(left)
            st.button(f"Next, {more} left" if more else "That was the last", key="next-again", on_click=_next)
        elif given := question.draw(item, parameters, key, "again"):
            question.record_answer(chapter, item, parameters, given, "again")
            done.add((name, asked))
            st.rerun()


def _next() -> None:
    st.session_state.again = None


def _count(due: list[returning.Return], coming: list[returning.Return]) -> str:
    """Return how many questions are due, and when the next one is."""
    if not coming:
        return "Nothing yet: questions that you answer in a text or a quiz will come back here."
    if due:
        worst = sum(one.urgency == 0 for one in due)
        told = f"**{len(due)}** {'question is' if len(due) == 1 else 'questions are'} due"
        which = f"all {worst}" if worst == len(due) > 1 else "it" if worst == len(due) else f"{worst} of them"
        return f"{told}; you were sure of {which}, but wrong." if worst else f"{told}."
    day = datetime.fromisoformat(min(one.at for one in coming))
    return f"Nothing is due. The next question comes back on {day.day} {day:%B}."
