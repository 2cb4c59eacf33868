"""The list of pages, for navigation only: each page's content is in its own folder."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import streamlit as st

from app.browser import kinds

drawn = kinds.show()  # before the imports below, so that the browser can already start loading
from app.browser import presentation  # noqa: E402
from app.settings import chosen  # noqa: E402
from app.textbook import origin  # noqa: E402
from app.workbench import workbench  # noqa: E402
from lessons import instructor  # noqa: E402


def later(module: str) -> Callable[[], None]:
    """Return a function that draws the page of this module.

    The module is imported when the page is opened, so that the first page need not wait for it.
    """
    return lambda: import_module(f"app.{module}").page()


HERE = Path(__file__).resolve().parent
st.set_page_config("Lockstep", str(HERE / "icon.png"), layout="wide", initial_sidebar_state=340)
st.logo(HERE / "logo.svg", size="medium")
presentation.listen()
PAGES = [
    workbench.entry(),
    st.Page(later("schedules.page"), title="Schedules", url_path="schedules"),
    st.Page(later("textbook.page"), title="Textbook", url_path="textbook"),
    st.Page(later("survey"), title="Survey", url_path="survey"),
    st.Page(later("kernel_pages.kernels"), title="Kernels", url_path="kernels"),
    st.Page(later("upload"), title="Your own", url_path="own"),
    st.Page(later("network"), title="Simulated network", url_path="network"),
    st.Page(later("plan"), title="Plan", url_path="plan"),
    st.Page(
        later("textbook.instructor"),
        title="For instructors",
        url_path="instructors",
        visibility="visible" if instructor.is_visible(st.session_state.get("instructor", "")) else "hidden",
    ),
]
page = st.navigation(PAGES, position="top")
if wanted := st.session_state.pop("wanted", ""):  # of the workbench, which has none
    st.switch_page(PAGES[5], query_params={"wanted": wanted})
if page is not PAGES[0]:
    chosen.leave_address()
if page in PAGES[:2]:
    origin.back(PAGES[2])
try:
    page.run()
finally:
    drawn.empty()
