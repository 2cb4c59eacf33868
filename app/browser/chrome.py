"""Add what Streamlit's page lacks: one browser-history entry per run, scrolling to a question or its answer, and a
rerun once the reader sees a page that was drawn in part.

Relies on the script's run context, which tells whether the page is drawn because of the browser's history, and on the
class of a navigation entry. Without the first, going back changes the address, but not the page.
"""

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.browser.scripts import script
from experiments.specification.experiment import PAGE

Entry = StreamlitPage  # of the navigation
_mount = script("chrome")


def show(run: str = "", answer: int = 0, in_part: bool = False) -> None:
    """Mount chrome.js at the end of the page. `run` is the name of the run in the address, if any.

    The page scrolls once to the question or the answer with the number `answer`. If it was drawn `in_part`, it is drawn
    again, with `opened` in the session's state, once the curtain has opened (opening.js).
    """
    data = {"run": run, "apart": PAGE, "answer": answer, "inPart": in_part}
    _mount(data=data, key="chrome", on_opened_change=lambda: st.session_state.update(opened=True))


def is_back_navigation() -> bool:
    """Return True if the page is drawn because the reader pressed the browser's Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
