"""Lockstep's workbench: `streamlit run app/main.py`. Navigation only; what is on a page is said in views/."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE.parent) not in sys.path:  # Streamlit puts app/ there, and not the root
    sys.path.insert(0, str(HERE.parent))

import streamlit as st  # noqa: E402

from app.views import kernels, own, schedules, textbook, workbench  # noqa: E402

st.set_page_config("Lockstep", str(HERE / "icon.png"), layout="wide", initial_sidebar_state=340)
st.html(HERE / "style.css")
st.logo(HERE / "logo.svg", size="medium")
PAGES = [
    st.Page(workbench.page, title="Workbench", url_path="workbench", default=True),
    st.Page(schedules.page, title="Schedules", url_path="schedules"),
    st.Page(textbook.page, title="Textbook", url_path="textbook"),
    st.Page(kernels.page, title="Kernels", url_path="kernels"),
    st.Page(own.page, title="Your own", url_path="own"),
]
st.navigation(PAGES, position="top").run()
