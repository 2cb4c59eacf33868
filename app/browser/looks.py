"""Looks that change with what is on the page; those that never change stand in style.css.

Relies on the test ids of Streamlit's metrics. Without them figures over several seeds are cut off.
"""

from __future__ import annotations

import streamlit as st

SMALLER = """<style>.stApp .st-key-figures [data-testid="stMetricValue"] {
font-size: 1.05rem; line-height: 1.3; height: 2.2rem; letter-spacing: -0.01em }
.stApp .st-key-figures [data-testid="stMetricValue"] :is(div, p) { white-space: normal }</style>"""
"""As a rule with :has() it had the whole page styled anew at every change in it."""


def shrink_figures() -> None:
    """Draw figures with a ±, and some with of how many, in as much room as those without."""
    st.html(SMALLER)


def fade(*keys: str, opacity: float, grey: bool = False) -> None:
    """Let what has these keys fade, such as figures of other settings than those that are chosen."""
    parts = ", ".join(f".st-key-{key}" for key in keys)
    st.html(f"<style>{parts} {{ opacity: {opacity}{'; filter: grayscale(1)' * grey} }}</style>")
