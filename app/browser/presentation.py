"""Presentation mode: the key P, or `size=large` in the address, enlarges the page and hides the sidebar."""

from app.browser.scripts import script
from experiments.exports.page import PRESENTING

KEY = "presentation"
_mount = script("presentation", f"{PRESENTING}\n")


def listen() -> None:
    _mount(key=KEY)
