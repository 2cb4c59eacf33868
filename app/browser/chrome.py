"""Add what Streamlit's page lacks: one browser-history entry per run, and scrolling to a question or its answer.

Relies on the script's run context, which tells whether the page is drawn because of the browser's history, and on the
class of a navigation entry. Without the first, going back changes the address, but not the page.
"""

from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from app.browser.scripts import script
from experiments.specification.experiment import PAGE

Entry = StreamlitPage  # of the navigation
_mount = script("chrome")


def show(run: str = "", answer: int = 0) -> None:
    """Mount the script at the end of the page; `run` is the name of the run in the address, if any.

    The page scrolls once to the question or the answer with the number `answer`.
    """
    _mount(data={"run": run, "apart": PAGE, "answer": answer}, key="chrome")


def is_back_navigation() -> bool:
    """Return True if the page is drawn because the reader pressed the browser's Back or Forward."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
