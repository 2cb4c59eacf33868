"""The simulated network: what it leaves out, as the documentation has it."""

from __future__ import annotations

import streamlit as st

from installation import document

TEXT = document("docs/simulated_network.md")


def page() -> None:
    """Show the text, a line of the page as long as one of the book."""
    with st.container(width=820):
        st.markdown(TEXT.read_text("utf-8"))
