"""Canvases for pictures that change while they are viewed: plain JavaScript, mounted by Streamlit's components v2."""

from pathlib import Path

import streamlit as st

_FOLDER = Path(__file__).parent


def canvas(name: str):
    """Return the mounting command of the component name.js, name.css and name.html, with the shared canvas files."""
    text = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in ("js", "css", "html")}
    for kind in ("js", "css"):
        text[kind] = (_FOLDER / f"canvas.{kind}").read_text("utf-8") + text[kind]
    return st.components.v2.component(f"lockstep_{name}", **text)
