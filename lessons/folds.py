"""Folds: parts of a text that a first-time reader can skip. On a page they stay closed until the reader opens them.

    {{ fold Why Nesterov is less tolerant }}
    ... paragraphs, formulas, tables, figures, schedules, timelines and code ...
    {{ end fold }}

A fold has no heading, no prediction and no other fold: the contents do not list it, nothing in it blocks the text, and
one click opens all of it.
"""

import re
from collections.abc import Iterator

CODE_BLOCK = re.compile(r"^\s*(```|~~~)")
BEGIN = re.compile(r"^\{\{ fold(?: (.*?))? \}\}\s*$")
END = re.compile(r"^\{\{ end fold \}\}\s*$")
OUTSIDE = {"a heading": re.compile(r"^#+ "), "a prediction": re.compile(r"^\{\{ predict ")}


def lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line of `text` as (line, whether it is part of a code block)."""
    inside = False
    for line in text.splitlines():
        edge = bool(CODE_BLOCK.match(line))
        yield line, inside or edge
        inside ^= edge


def pieces(text: str) -> list[tuple[str, str]]:
    """Return the pieces of a text in order, each as (title, text). Outside folds, the title is ""."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line, code in lines(text):
        begins = None if code else BEGIN.match(line)
        if begins or (not code and END.match(line)):
            found.append((begins[1] or "" if begins else "", []))
        else:
            found[-1][1].append(line)
    return [(title, "\n".join(piece)) for title, piece in found]


def path(text: str) -> str:
    """Return the text without its folds, as a first-time reader reads it."""
    return "\n".join(piece for title, piece in pieces(text) if not title)


def text_in_folds(text: str) -> str:
    """Return only the text inside folds."""
    return "\n".join(piece for title, piece in pieces(text) if title)


def check(text: str, chapter: str) -> None:
    """Raise ValueError if a fold is incomplete or contains something that is not allowed in folds."""
    titles: list[str] = []
    title = ""  # of the open fold
    for line in (line for line, code in lines(text) if not code):
        if begins := BEGIN.match(line):
            if title:
                wrong = f"the fold {begins[1]!r} begins inside {title!r}; end that one first, with {{{{ end fold }}}}"
            elif not begins[1]:
                wrong = "a fold has no title; say what is in it, as in {{ fold Where the edge is }}"
            elif begins[1] in titles:
                wrong = f"two folds are called {begins[1]!r}; links need a title for each"
            else:
                titles.append(title := begins[1])
                continue
        elif END.match(line):
            if title:
                title = ""
                continue
            wrong = f"{line.strip()} ends a fold, and none is open; begin it with {{{{ fold TITLE }}}}"
        elif title and (held := [what for what, pattern in OUTSIDE.items() if pattern.match(line)]):
            wrong = f"the fold {title!r} holds {held[0]}, {line.strip()[:80]!r}; end the fold before it, or remove it"
        else:
            continue
        raise ValueError(f"{chapter}: {wrong}.")
    if title:
        raise ValueError(f"{chapter}: the fold {title!r} does not end; write {{{{ end fold }}}} on a line of its own.")
    if any(title and not piece.strip() for title, piece in pieces(text)):
        raise ValueError(f"{chapter}: a fold is empty; write something between its marks, or remove them.")
