"""Styles that depend on what is on the page; fixed styles are in style.css.

Relies on the test ids of Streamlit's metrics. Without them figures over several seeds are cut off.
"""

import streamlit as st

SMALLER = """<style>.stApp .st-key-figures [data-testid="stMetricValue"] {
font-size: 1.05rem; line-height: 1.3; height: 2.2rem; letter-spacing: -0.01em }
.stApp .st-key-figures [data-testid="stMetricValue"] :is(div, p) { white-space: normal }</style>"""
"""The style for smaller figures. A CSS rule with :has() instead would restyle the whole page at every change."""


def shrink_figures() -> None:
    """Use a smaller font for a run's figures: with a ± or a number of runs, they are too long for the usual width."""
    st.html(SMALLER)


def fade(*keys: str, opacity: float, grey: bool = False) -> None:
    """Fade the elements with these keys, such as figures of settings that are no longer chosen."""
    parts = ", ".join(f".st-key-{key}" for key in keys)
    st.html(f"<style>{parts} {{ opacity: {opacity}{'; filter: grayscale(1)' * grey} }}</style>")


def veil(key: str, word: str) -> None:
    """Grey out the content of the element with this key, and label it with `word`."""
    part = f".st-key-{key}"
    st.html(
        f"<style>{part} {{ position: relative }} {part} > * {{ opacity: 0.45; filter: grayscale(1) }} "
        f"{part}::after {{ content: '{word}' }}</style>"
    )
