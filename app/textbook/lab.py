"""The lab of a chapter: the sheet with expected results for instructors, the handout for everybody else."""

from collections import Counter

import streamlit as st

from app.textbook import instructor, reading
from lessons import instructor as setting
from lessons import markup
from lessons.chapters import Chapter
from lessons.instructor import sheet


def show(chapter: Chapter) -> None:
    """Show the sheet to instructors, the handout to other readers."""
    full = instructor.is_visible() and not st.toggle("As students see it", key="as-students", persist_state="session")
    if full and not sheet.expected_results(chapter).figures:
        full = False
        st.info(
            f"This is the handout: the expected results, `lessons/{chapter.name}/lab.json`, are not on this server.",
            icon=":material/visibility_off:",
        )
    text = sheet.sheet(chapter) if full else sheet.handout(chapter)
    seen = Counter()
    for block in markup.blocks(text, chapter.name, chapter.golden):
        reading.block(chapter, block, "lab", seen)
    address = (st.context.url or sheet.HERE).partition("?")[0].rpartition("/")[0] + "/"
    st.download_button(
        "Handout to print", lambda: sheet.page(chapter, address), f"{chapter.name}_handout.html", "text/html",
        key=f"handout-{chapter.name}", on_click="ignore", icon=":material/print:",
    )  # fmt: skip
    if setting.needs_password() and not instructor.is_visible():  # a reload starts a session without the password
        st.caption("Do you teach this class? [Expected results (password required)](instructors).")
