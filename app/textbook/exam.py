"""Test mode: ten questions from the chosen chapters, no explanations until the end, then time and score."""

import secrets
from datetime import datetime

import streamlit as st

import lessons
from app.textbook import memory, question
from experiments.wording import units
from lessons import progress, returning
from lessons.chapters import Chapter
from lessons.progress import Answer


def under_way() -> bool:
    """Return True if a test has begun or its result is on the page."""
    return bool(st.session_state.get("exam"))


def show(chapter: Chapter) -> None:
    """Show the start of a test, the next question of a test in progress, or its result."""
    test = st.session_state.get("exam")
    if not test:
        _offer(chapter)
    elif len(test["given"]) < len(test["questions"]):
        _ask(test)
    else:
        _result(test)


def _offer(chapter: Chapter) -> None:
    chapters = {one.name: one.title() for one in lessons.written_chapters()}
    st.markdown("## Test", anchors=False)
    st.markdown("Ten questions, and no explanations until the end.")
    chosen = st.pills(
        "Chapters",
        list(chapters),
        selection_mode="multi",
        default=[chapter.name] if chapter.name in chapters else [],
        key="of-exam",
        format_func=chapters.get,
    )
    st.button("Begin", disabled=not chosen, key="begin-exam", on_click=_begin, args=(chosen,), icon=":material/timer:")


def _begin(chosen: list[str]) -> None:
    items = [(name, item) for name in chosen for item in lessons.chapter(name).items]
    questions = [
        (name, item.name, values) for name, item, values in returning.draw_test(items, secrets.randbelow(2**31))
    ]
    st.session_state.exam = {"questions": questions, "given": [], "begun": progress.now(), "key": secrets.token_hex(4)}


def _ask(test: dict) -> None:
    number = len(test["given"])
    name, asked, parameters = test["questions"][number]
    chapter = lessons.chapter(name)
    item = chapter.item(asked)
    st.progress(number / len(test["questions"]), f"Question {number + 1} of {len(test['questions'])}")
    with st.container(border=True, key=f"item-exam-{number}"):
        if given := question.draw(item, parameters, f"exam-{test['key']}-{number}", "quiz"):
            question.record_answer(chapter, item, parameters, given, "again")
            test["given"].append(memory.document().of(name, asked, "again")[-1])
            test["ended"] = progress.now()
            st.rerun()
    st.button("Quit the test", key="end-exam", type="tertiary", on_click=_end)


def _result(test: dict) -> None:
    given: list[Answer] = test["given"]
    seconds = (datetime.fromisoformat(test["ended"]) - datetime.fromisoformat(test["begun"])).total_seconds()
    right, wrong = sum(a.right for a in given), sum(a.sure == 2 and not a.right for a in given)
    st.markdown(f"## {right} of {len(given)} right, in {units.seconds(seconds)}", anchors=False)
    if wrong:
        which = "that question" if wrong == 1 else "those questions"
        st.markdown(f"You were sure but wrong on {wrong}; you will see {which} first in the next review.")
    st.button("Done", key="end-exam", on_click=_end)
    for number, answer in enumerate(given):
        chapter = lessons.chapter(answer.chapter)
        with st.container(border=True, key=f"result-exam-{number}"):
            st.caption(f"{number + 1}. {chapter.title()}")
            question.explain(chapter, chapter.item(answer.item), answer, "quiz")


def _end() -> None:
    st.session_state.exam = None
