"""The reader's progress, in this session and in the browser: answers, passed predictions, place and scores."""

from typing import Any

import streamlit as st

import lessons
from app.browser import storage
from lessons import progress, returning
from lessons.progress import EMPTY, Answer, ReaderProgress

NOT_KEPT = (
    "This browser cannot store anything (a private window?): download your answers under *My work*, or they are "
    "lost after a reload."
)


def document() -> ReaderProgress:
    """Return this reader's progress."""
    return st.session_state.setdefault("progress", EMPTY)


def recorded_answers() -> tuple[Answer, ...]:
    """Return the answers to questions that are still in the book."""
    return returning.valid_answers(document(), lessons.written_chapters())


def add(other: ReaderProgress) -> None:
    """Merge the progress in another document into this reader's."""
    st.session_state.progress = progress.merge(other, document())


def record(chapter: str, item: str, parameters: dict, guess: Any, sure: int, right: bool, place: str) -> None:
    answer = {"chapter": chapter, "item": item, "parameters": parameters, "guess": guess, "sure": sure}
    answer |= {"right": right, "place": place, "at": progress.now()}
    st.session_state.progress = document().with_answer(Answer.model_validate(answer))


def rename(reader: str) -> None:
    st.session_state.progress = document().model_copy(update={"reader": reader})


def skip(chapter: str, item: str) -> None:
    """Let the text continue after a prediction that the reader skips."""
    st.session_state.progress = document().with_skip(chapter, item)


def is_passed(chapter: str, item: str) -> bool:
    """Return True if the text continues after this prediction."""
    return f"{chapter}.{item}" in document().passed


def grade(report: dict, solution: str) -> bool:
    """Record a solution and its score; return True if it is better than the recorded one."""
    before = document().scores.get(report["chapter"])
    if before and before.score >= report["score"]:
        return False
    st.session_state.progress = document().with_grade(report, solution)
    return True


def forget() -> None:
    """Forget everything, here and in the browser."""
    _reset()
    st.session_state.forgetting = True  # until the browser confirms it


def keep(chapter: str, opened: str) -> None:
    """Synchronise progress with the browser's local storage.

    `chapter` is the chapter whose text is being read, or "". `opened` identifies what is on the page; when it changes,
    the page scrolls to its top.
    """
    state = st.session_state
    forgetting, resets, returning = state.get("forgetting", False), state.get("resets", 0), state.get("returning")
    storage.storage(document(), chapter, opened, forgetting, resets, returning, _listen)
    if said := state.get("not_kept"):
        st.caption(said)


def place() -> str:
    """Return the chapter that the reader last read, or ""."""
    last = next(reversed(document().places), "")
    return last if last in lessons.CHAPTERS else ""


def go_back(anchor: str) -> None:
    """Scroll once to this anchor, as soon as the page has been drawn that far."""
    state = st.session_state
    state.returning = {"anchor": anchor, "number": state.get("returning", {}).get("number", 0) + 1}


def go_on() -> None:
    """Open the chapter that the reader last read, at the place where they stopped."""
    chapter = place()
    st.session_state.chapter, st.session_state.part = chapter, "text"
    go_back(document().places[chapter])


def _listen() -> None:
    """Process the browser's message before the page is drawn."""
    state, news = st.session_state, storage.browser_message()
    if news.get("forgotten"):
        _reset()
    if news.get("lasting") is False:
        state.not_kept = NOT_KEPT
    try:
        if kept := news.get("kept"):
            found = progress.read(str(kept))
            state.progress = progress.merge(document(), found)
    except ValueError as error:
        state.not_kept = f"What this browser has stored cannot be read: {error}"


def _reset() -> None:
    """Reset the session, including solutions, whose reports would otherwise be counted again."""
    state = st.session_state
    state.progress, state.forgetting, state.resets = EMPTY, False, state.get("resets", 0) + 1
    for name in map(str, list(state)):
        if name in ("again", "round", "exam", "brought", "verdicts") or name.startswith(("anew-", "solution-")):
            del state[name]
