"""Access for instructors, and the page that links to everything they need."""

import threading
import time

import streamlit as st

import lessons
from app.textbook import front
from lessons import instructor
from lessons.instructor import hub

DELAY = 1.0  # s that a wrong password takes, for all readers together, so guesses come one at a time


@st.cache_resource(show_spinner=False)
def _one_at_a_time() -> threading.Lock:
    return threading.Lock()


def is_visible() -> bool:
    """Return True if this reader may see the instructors' pages."""
    return instructor.is_visible(st.session_state.get("instructor", ""))


def page() -> None:
    """Show the instructors' page, or ask for its password."""
    st.markdown("# For instructors", anchors=False)
    if not is_visible():
        if instructor.needs_password():
            _ask()
        else:
            st.info(
                f"The pages for instructors are off. To open them, set `{instructor.SETTING}` before you start the "
                f"workbench: `{instructor.SETTING}=1` shows them to everyone, any other text is a password.",
                icon=":material/lock:",
            )
        return
    for section in hub.sections():
        st.markdown(f"## {section.title}")
        if section.title == "Labs":
            _labs()
        st.markdown(section.text)
    for name, words in hub.downloads().items():
        st.download_button(
            name, words, name, "text/plain", key=f"take-{name}", on_click="ignore", icon=":material/download:"
        )


def _labs() -> None:
    """Draw a row for each lab, with links that open the lab and the chapter's exercise in this session."""
    for one in (one for one in lessons.written_chapters() if one.lab()):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"lab-{one.name}"):
            front.link(one.name, front.name(one), ":material/science:", "lab")
            st.caption(f"{one.minutes} minutes to read the chapter", width="content")
            if one.exercise:
                front.link(one.name, "Exercise", part="exercise")


def _ask() -> None:
    """Ask for the password. It is stored in this session, never in the address or the browser."""
    with st.form("password", border=False):
        given = st.text_input("Password", type="password", max_chars=200, width=300, key="given-password")
        sent = st.form_submit_button("Open")
    if not sent:
        return
    with _one_at_a_time():
        if right := instructor.is_visible(given):
            st.session_state.instructor = given
        else:
            time.sleep(DELAY)
    if right:
        st.rerun()
    st.error("That is not the password. Ask the administrator of this server for it.", icon=":material/lock:")
