"""The quiz of a chapter: all its questions."""

import streamlit as st

from app.textbook import question
from lessons.chapters import Chapter


def show(chapter: Chapter) -> None:
    st.markdown(f"# {chapter.title()}: quiz")
    if chapter.items:
        st.caption("The predictions from the text, then further questions, all with new numbers.")
    for item in chapter.quiz:
        question.ask(chapter, item, "quiz")
