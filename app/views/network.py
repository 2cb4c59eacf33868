"""The simulated network: what it leaves out, as the documentation has it."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

TEXT = Path(__file__).resolve().parents[2] / "docs" / "simulated_network.md"


def page() -> None:
    """Show the text, a line of the page as long as one of the book."""
    with st.container(width=820):
        st.markdown(TEXT.read_text("utf-8"))
