"""The size of a presentation: key P, or `size=large` in the address, makes the page large and hides the side bar."""

from __future__ import annotations

import streamlit as st

from experiments.exports.page import PRESENTING

KEY = "presentation"
_mount = st.components.v2.component(
    "lockstep_presentation", js=f"{PRESENTING}\nexport default presenting;\n", html="<i hidden></i>"
)


def listen() -> None:
    """Let the page hear the key."""
    _mount(key=KEY)
