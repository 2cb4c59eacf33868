"""The place in the book from which a run or a schedule was opened, and the button that leads back to it.

The address has it as `from`: the query of the textbook's own address, then # and the figure's anchor.
"""

from urllib.parse import parse_qsl, quote, urlencode

import streamlit as st

import lessons
from app.browser import chrome
from app.browser.text import escape_markdown

NAME = "from"
ADDRESS = ("chapter", "part", "everything")
"""Parameters of the textbook's address."""


def here(anchor: str) -> dict[str, str]:
    """Return the query parameter that leads back to this anchor on the textbook's current page."""
    there = {name: st.query_params[name] for name in ADDRESS if name in st.query_params}
    return {NAME: f"{urlencode(there)}#{anchor}"} if there else {}


def link(address: str, anchor: str) -> str:
    """Return a workbench link that also holds the way back to this anchor."""
    return "&".join([address, *(f"{name}={quote(value)}" for name, value in here(anchor).items())])


def back(textbook: chrome.Entry) -> None:
    """Show the button that leads back to the book, if the reader came from there according to the address."""
    query, _, anchor = st.query_params.get(NAME, "").partition("#")
    there = {name: value for name, value in parse_qsl(query) if name in ADDRESS}
    if there.get("chapter") not in lessons.CHAPTERS:
        return
    from app.textbook import memory  # which imports the whole textbook

    chapter, state = lessons.chapter(there["chapter"]), st.session_state
    label = f"Back to the chapter: {chapter.number}. {escape_markdown(chapter.title())}"
    if st.button(label, key="back-to-chapter", icon=":material/arrow_back:", type="tertiary"):
        for name in ADDRESS:  # the page reads them from its address if the session has none
            state.pop(name, None)
        memory.go_back(anchor)
        st.switch_page(textbook, query_params=there)
