"""Helpers for building sentences: capitalise a text, and join words with commas and "and"."""

from collections.abc import Iterable


def capital(text: str) -> str:
    """Return the text with its first letter capitalised and the rest unchanged, such as "Held-out R²" for "held-out
    R²".
    """
    return text[:1].upper() + text[1:]


def join_words(words: Iterable[str]) -> str:
    """Join words into text, such as "a", "a and b" or "a, b and c". Return "" if there are none."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last
