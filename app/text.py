"""Text from elsewhere on our pages: error messages and remarks, shown verbatim."""

from __future__ import annotations


def sentence(text: str) -> str:
    """Return a message as a sentence: capital, full stop, and no markdown in it."""
    text = escaped(text[:1].upper() + text[1:])
    return text if not text or text.endswith((".", "!", "?")) else text + "."


def escaped(text: str) -> str:
    """Return text with nothing in it that markdown would take for a mark."""
    for mark in "\\`*_[]$:#<>~|":
        text = text.replace(mark, "\\" + mark)
    return text
