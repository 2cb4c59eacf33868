"""The page of the textbook: chapters on the left; on the right the chosen one, part by part."""

import secrets
from collections.abc import Iterable

import streamlit as st

import lessons
from app.browser import chrome
from app.textbook import again, bugs, exercise, front, lab, memory, quiz, reading, work
from app.textbook.question import SEEDS

PARTS = {
    "text": "Text",
    "quiz": "Quiz",
    "exercise": "Exercise",
    "lab": "Lab",
    "again": "Review",
    "bugs": "Find the bug",
    "work": "My work",
}


def page() -> None:
    """Show chapters on the left; on the right the first page of the book, or one part of a chapter."""
    st.session_state.setdefault("dice", secrets.randbelow(SEEDS))
    chapters = {name: lessons.chapter(name) for name in lessons.CHAPTERS}
    _read_address(chapter=[front.CONTENTS, *chapters], part=list(PARTS), everything=[False, True])
    with st.sidebar:
        name = st.radio(
            "Chapter", [front.CONTENTS, *chapters], key="chapter", **reading.KEPT,
            format_func=lambda n: front.name(chapters[n]) if n in chapters else "Contents and notation",
        )  # fmt: skip
    if name not in chapters:
        with st.container(key="reader"):
            memory.keep("", front.CONTENTS)
            if last := memory.place():
                label = f"Continue where you were: {front.name(chapters[last])}"
                st.button(label, key="go-on", type="primary", on_click=memory.go_on)
            return front.first_page()
    chapter = chapters[name]
    parts = {
        "text": (True, reading.show),
        "quiz": (chapter.items, quiz.show),
        "exercise": (chapter.exercise, exercise.show),
        "lab": (chapter.lab(), lab.show),
        "again": (True, again.show),
        "bugs": (True, bugs.show),
        "work": (True, work.show),
    }
    offered = [part for part, (there, _) in parts.items() if there]
    if st.session_state.part not in offered:
        st.session_state.part = "text"
    with st.container(key="reader"):
        if len(offered) > 1:
            st.segmented_control(
                "Part", offered, key="part", required=True, format_func=PARTS.get, label_visibility="collapsed",
                **reading.KEPT,
            )  # fmt: skip
        part = st.session_state.part
        memory.keep(name if part == "text" else "", f"{name}/{part}")
        parts[part][1](chapter)


def _read_address(**options: list) -> None:
    """Load the choice from the address at first, after the browser's Back, and after a link that leads to a chapter.

    Then keep the address up to date. It comes from a link if it names a chapter and the page did not write it.
    """
    state = st.session_state
    linked = "chapter" in st.query_params and _address(options) != state.get("book_address")
    again = linked or chrome.is_back_navigation()
    for name, values in options.items():
        if again or name not in state:
            state[name] = next((v for v in values if str(v).lower() == st.query_params.get(name)), values[0])
        if state[name] == values[0]:
            st.query_params.pop(name, None)
        else:
            st.query_params[name] = str(state[name]).lower()
    state.book_address = _address(options)


def _address(names: Iterable[str]) -> dict[str, str]:
    return {name: st.query_params[name] for name in names if name in st.query_params}
