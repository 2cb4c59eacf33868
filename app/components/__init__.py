"""Canvases for what changes while one looks at it: plain JavaScript, mounted by Streamlit's components v2."""

from pathlib import Path

import streamlit as st

_FOLDER = Path(__file__).parent


def canvas(name: str):
    """The mounting command of the component whose files are name.js, name.css and name.html, beside canvas.js."""
    text = {kind: (_FOLDER / f"{name}.{kind}").read_text("utf-8") for kind in ("js", "css", "html")}
    text["js"] = (_FOLDER / "canvas.js").read_text("utf-8") + text["js"]
    return st.components.v2.component(f"lockstep_{name}", **text)
