"""The pages. Navigation only; views/ hold what is on a page."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import streamlit as st

from app import kinds

drawn = kinds.show()  # before what follows is imported, so that the browser has something to do meanwhile
from app import chosen, presentation  # noqa: E402
from app.views import origin, workbench  # noqa: E402
from lessons import instructor  # noqa: E402


def later(view: str) -> Callable[[], None]:
    """Return the page of this view, imported when it is opened: a first page waits for no other's imports."""
    return lambda: import_module(f"app.views.{view}").page()


HERE = Path(__file__).resolve().parent
st.set_page_config("Lockstep", str(HERE / "icon.png"), layout="wide", initial_sidebar_state=340)
st.logo(HERE / "logo.svg", size="medium")
presentation.listen()
PAGES = [
    workbench.entry(),
    st.Page(later("schedules"), title="Schedules", url_path="schedules"),
    st.Page(later("textbook"), title="Textbook", url_path="textbook"),
    st.Page(later("survey"), title="Survey", url_path="survey"),
    st.Page(later("kernels"), title="Kernels", url_path="kernels"),
    st.Page(later("upload"), title="Your own", url_path="own"),
    st.Page(later("network"), title="Simulated network", url_path="network"),
    st.Page(
        later("textbook.instructor"),
        title="For instructors",
        url_path="instructors",
        visibility="visible" if instructor.shown(st.session_state.get("instructor", "")) else "hidden",
    ),
]
page = st.navigation(PAGES, position="top")
if page is not PAGES[0]:
    chosen.leave_address()
if page in PAGES[:2]:
    origin.back(PAGES[2])
try:
    page.run()
finally:
    drawn.empty()
