"""Save a reader's progress in the browser's local storage, and load it into the session."""

from collections.abc import Callable

import streamlit as st

from app.browser.scripts import script
from lessons import progress

_mount = script("storage", progress.SCRIPT.read_text("utf-8"))
KEY = "browser-storage"


def storage(
    document: progress.ReaderProgress,
    chapter: str,
    opened: str,
    forget: bool,
    resets: int,
    returning: dict | None,
    on_news: Callable[[], None],
):
    """Save `document` in the browser's local storage, and with it the reader's position while the text of `chapter` is
    shown.

    `opened` identifies what is being read; anything else that the reader opens starts at its top. `on_news` is called
    when the browser has a message, which `browser_message()` returns. With `forget`, the stored document is deleted
    instead. `resets` counts how often the session was reset, so that its earlier state is not stored again. `returning`
    has the anchor of a figure to which the reader returns, and a number that makes this happen only once.
    """
    data = {"document": document.text(), "chapter": chapter, "opened": opened}
    data |= {"forget": forget, "resets": resets, "returning": returning}
    return _mount(data=data, key=KEY, on_news_change=on_news)


def browser_message() -> dict:
    """Return the browser's message: `kept` (the stored JSON), `forgotten`, or `lasting`=False if it cannot store
    anything.
    """
    news = (st.session_state.get(KEY) or {}).get("news")
    return news if isinstance(news, dict) else {}
