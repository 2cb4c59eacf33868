"""Quotes: how a test asks a message for the few words that carry its meaning, so that the rest may be reworded."""

from __future__ import annotations

import re


def quote(words: str) -> str:
    """Return a pattern for a message with these words in this order: "3 stages … 1 to 2" leaves out what is between.

    >>> bool(re.search(quote("3 stages … 1 to 2"), "3 stages do not fit 2 layers (a and b); use 1 to 2."))
    True
    """
    return ".*".join(re.escape(part.strip()) for part in words.split("…"))
