"""The reader's verdicts on the questions, kept in the session and in the browser, so that they survive a reload.

A verdict is True or False for a first prediction that was right or wrong, and None for an answer seen without one.
"""

import json

import streamlit as st

from app.browser.scripts import script
from app.guide.questions import ALL, Question

KEY = "verdicts-storage"
MARKS = {True: "✓", False: "✗"}
BADGES = {True: ":green-badge[:material/check: Right] ", False: ":orange-badge[:material/close: Not quite] ", None: ""}
SPOKEN = {True: "predicted right", False: "predicted wrong", None: "answer seen"}
_mount = script("verdicts")


def document() -> dict[str, bool | None]:
    """Return the verdicts so far, by the question's query."""
    return st.session_state.get("verdicts", {})


def has_seen(question: Question) -> bool:
    """Return True if the reader has predicted the answer or asked for it."""
    return question.query in document()


def mark(question: Question) -> str:
    """Return "✓" or "✗" for the reader's prediction, or "" if there is none."""
    return MARKS.get(document().get(question.query), "")


def in_words(question: Question) -> str:
    """Return the verdict in words, such as "predicted right", or "open" if the reader has not seen the answer."""
    return SPOKEN[document()[question.query]] if has_seen(question) else "open"


def record(question: Question, right: bool | None) -> None:
    """Record a verdict; only the first counts, because the reader knows the answer afterwards."""
    st.session_state.verdicts = {question.query: right, **document()}


def score() -> str:
    """Return how many predictions were right, such as "2 of 3 predicted right", or "" if there are none."""
    predicted = [right for right in document().values() if right is not None]
    return f"{sum(predicted)} of {len(predicted)} predicted right" if predicted else ""


def keep() -> None:
    """Synchronise the verdicts with the browser's local storage."""
    _mount(data={"document": json.dumps(document())}, key=KEY, on_kept_change=_listen)


def _listen() -> None:
    """Add the verdicts that the browser has stored, before the page is drawn."""
    st.session_state.verdicts = document() | read((st.session_state.get(KEY) or {}).get("kept"))


def read(text: object) -> dict[str, bool | None]:
    """Return the verdicts in `text`, except those on questions that no longer exist. If it holds no JSON object, return
    {}.

    A browser's storage can hold anything.
    """
    try:
        found = json.loads(str(text))
    except ValueError:
        return {}
    given = found if isinstance(found, dict) else {}
    return {q.query: given[q.query] for q in ALL if any(given.get(q.query, "") is one for one in SPOKEN)}
