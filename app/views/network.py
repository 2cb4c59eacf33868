"""The simulated network: what it leaves out, as the documentation has it."""

from __future__ import annotations

import re

import streamlit as st

from installation import document

TEXT = document("docs/simulated_network.md")


def page() -> None:
    """Show the text, a line of the page as long as one of the book, and its sections on the left."""
    text = TEXT.read_text("utf-8")
    with st.sidebar:
        for title in re.findall(r"^## (.+)$", text, re.MULTILINE):
            st.markdown(f"[{title}](#{'-'.join(re.findall('[a-z]+', title.lower()))})")
    with st.container(width=820):
        st.markdown(text)
