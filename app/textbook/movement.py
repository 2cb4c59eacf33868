"""Animations in a text: a schedule that plays, and the timeline of a run."""

import streamlit as st

from app.browser import components
from app.browser.text import escape_markdown
from app.textbook import origin
from lessons import markup, movement, timelines
from lessons.chapters import Chapter


def schedule(chapter: Chapter, block: markup.Schedule, place: str) -> None:
    """Show the schedule that `block` describes, in a chapter's text or its lab sheet (`place`)."""
    box = f"schedule-{place}-{block.plan.key()}"
    with st.container(border=True, key=box):
        _head(chapter, block)
        components.timeline(_frame(block.plan.key(), block), key=f"lanes-{place}-{block.plan.key()}")
        st.caption(f"{escape_markdown(block.settings)}. [On the *Schedules* page](./{origin.link(block.link, box)})")


def timeline(chapter: Chapter, block: markup.Timeline, place: str) -> None:
    """Show the timeline that `block` describes, in a chapter's text or its lab sheet (`place`)."""
    name = block.experiment.key()
    box = f"timeline-{place}-{name}"
    with st.container(border=True, key=box):
        _head(chapter, block)
        if frame := timelines.find(chapter.folder, block):
            components.timeline(frame, key=f"lanes-{place}-{name}")
        else:
            st.info("This run is not recorded; run it in the workbench.", icon=":material/hourglass_empty:")
        st.caption(f"{escape_markdown(block.settings)}. [In the workbench](./{origin.link(block.link, box)})")


def _head(chapter: Chapter, block: markup.Schedule | markup.Timeline) -> None:
    """Show the picture's number in the text, and a sentence on what it shows."""
    number = chapter.figure_number(block.link)
    st.markdown(f"**{f'Figure {number}. ' if number else ''}{escape_markdown(block.caption)}**")


@st.cache_resource(max_entries=64, show_spinner=False)
def _frame(key: str, _block: markup.Schedule) -> bytes:
    return movement.frame(_block)
