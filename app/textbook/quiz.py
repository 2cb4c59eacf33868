"""The quiz of a chapter, with all its questions."""

from __future__ import annotations

import streamlit as st

from app.textbook import question
from lessons.chapters import Chapter


def show(chapter: Chapter) -> None:
    st.markdown(f"# {chapter.title()}: quiz")
    if chapter.items:
        st.caption("The predictions of the text come again, then the other questions. Each draws its numbers anew.")
    for item in chapter.quiz:
        question.ask(chapter, item, "quiz")
