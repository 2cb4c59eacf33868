"""Scripts of the page: components that draw nothing but may report to the session.

`st.components.v2` is public. What the scripts themselves look for on the page is not: see the comment at the top of
each.
"""

from collections.abc import Callable
from pathlib import Path

import streamlit as st

HERE = Path(__file__).resolve().parent


def script(name: str, before: str = "") -> Callable:
    """Return the function that mounts `name`.js, preceded by the code `before`, on a page: mount(data=..., key=...)."""
    js = before + (HERE / f"{name}.js").read_text("utf-8")
    return st.components.v2.component(f"lockstep_{name}", js=js, html="<i hidden></i>")
