"""The pages. Navigation only; views/ hold what is on a page."""

from pathlib import Path

import streamlit as st

from app import chosen, presentation
from app.views import kernels, network, origin, schedules, survey, textbook, upload, workbench
from app.views.textbook import instructor

HERE = Path(__file__).resolve().parent
st.set_page_config("Lockstep", str(HERE / "icon.png"), layout="wide", initial_sidebar_state=340)
st.logo(HERE / "logo.svg", size="medium")
presentation.listen()
PAGES = [
    workbench.entry(),
    st.Page(schedules.page, title="Schedules", url_path="schedules"),
    st.Page(textbook.page, title="Textbook", url_path="textbook"),
    st.Page(survey.page, title="Survey", url_path="survey"),
    st.Page(kernels.page, title="Kernels", url_path="kernels"),
    st.Page(upload.page, title="Your own", url_path="own"),
    st.Page(network.page, title="Simulated network", url_path="network"),
    st.Page(
        instructor.page,
        title="For instructors",
        url_path="instructors",
        visibility="visible" if instructor.shown() else "hidden",
    ),
]
page = st.navigation(PAGES, position="top")
if page is not PAGES[0]:
    chosen.leave_address()
if page in PAGES[:2]:
    origin.back(PAGES[2])
page.run()
