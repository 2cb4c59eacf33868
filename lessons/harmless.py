"""Harmless text: what comes with a hand-in, as a terminal, a page or a spreadsheet may show it.

A terminal obeys escape sequences, a page and a terminal obey marks of direction, and a spreadsheet computes formulas.
Whatever a student wrote (a message, output, a name) goes through here on its way to a teacher.
"""

from __future__ import annotations

import re

INSTEAD = "\ufffd"  # what pages show for a character that is none
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except newline and tab, DELETE, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\ud800-\udfff]"  # halves of a character, which no file can hold
)
FORMULA = re.compile("((?:^|[;,|])\\s*)(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")  # lines may be split at any of these


def visible(text: str) -> str:
    """Return text with INSTEAD in place of every character that is obeyed rather than shown."""
    return OBEYED.sub(INSTEAD, text.replace("\r\n", "\n"))


def line(text: str) -> str:
    """Return text on one line, as a name is shown."""
    return visible(" ".join(text.split()))


def cell(text: str) -> str:
    """Return text on one line that no spreadsheet takes for a formula, whichever character it splits lines at."""
    return FORMULA.sub(r"\1'", line(text))
