"""Make text from a hand-in safe to show in a terminal, on a page or in a spreadsheet.

Terminals obey escape sequences, terminals and pages obey direction marks, and spreadsheets compute formulas.
Everything that a student wrote (a message, output, a name) goes through here on its way to a teacher.
"""

import re

INSTEAD = "\ufffd"  # what pages show for an invalid character
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except newline and tab, DELETE, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction of writing
    "\ud800-\udfff]"  # halves of a character, which no file can hold
)
FORMULA = re.compile("((?:^|[;,|])\\s*)(?=[=+\\-@\uff1d\uff0b\uff0d\uff20])")  # lines may be split at any of these


def visible(text: str) -> str:
    """Return text in which INSTEAD replaces characters that terminals or pages obey. These are direction marks, lone
    surrogates, and control characters other than newlines and tabs.
    """
    return OBEYED.sub(INSTEAD, text.replace("\r\n", "\n"))


def line(text: str) -> str:
    """Return text as a single line, such as a name, with characters replaced as in `visible`."""
    return visible(" ".join(text.split()))


def cell(text: str) -> str:
    """Return text as one line that no spreadsheet reads as a formula. That holds even if the spreadsheet splits cells
    at semicolons, commas or bars.
    """
    return FORMULA.sub(r"\1'", line(text))
