"""Pieces of sentences that are put together from words and names."""

from collections.abc import Iterable


def capital(text: str) -> str:
    """Return the text with its first letter capitalised and the rest unchanged: "Held-out R²"."""
    return text[:1].upper() + text[1:]


def join_words(words: Iterable[str]) -> str:
    """Return words as a list: "a", "a and b", "a, b and c"; "" without any."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} and {last}" if others else last
