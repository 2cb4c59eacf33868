"""What Streamlit's page lacks: one entry in the browser's history per run, a drawer that makes way on a phone.

And the answer to a question of the menu in sight.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from experiments.specification.experiment import PAGE

_mount = st.components.v2.component(
    "lockstep_chrome", js=Path(__file__).with_suffix(".js").read_text("utf-8"), html="<i hidden></i>"
)


def show(run: str = "", answer: int = 0) -> None:
    """Have it on the page, at its end; `run` names the one that the address stands for, if it stands for one.

    The page is scrolled to the answer of a question once, whose number `answer` is.
    """
    _mount(data={"run": run, "apart": PAGE, "answer": answer}, key="chrome")


def went_back() -> bool:
    """Return whether the page is drawn because the reader went back or forward in the browser's history."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation
