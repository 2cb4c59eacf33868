"""The size of a presentation: key P, or `size=large` in the address, makes the page large and hides the side bar."""

from __future__ import annotations

from app.browser.scripts import script
from experiments.exports.page import PRESENTING

KEY = "presentation"
_mount = script("presentation", f"{PRESENTING}\n")


def listen() -> None:
    """Let the page hear the key."""
    _mount(key=KEY)
