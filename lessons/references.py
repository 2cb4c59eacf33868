"""Inline references in a chapter's text, which cite a figure by its number or a chapter by its title."""

from collections.abc import Callable

import lessons

Address = Callable[[str, str], str]
"""(chapter, anchor or "") -> address of that place, as seen from another chapter's page."""


def figure(name: str, chapter: str, address: Address | None) -> str:
    """Return a reference such as "Figure 5.2" to the figure with this full name, with a link if `address` is given.

    `chapter` is the chapter that contains the reference. If that chapter shows the figure, its number there is used,
    else the number in the figure's own chapter. Raise ValueError if neither shows it.
    """
    for one in dict.fromkeys((chapter, name.partition(".")[0])):
        if number := lessons.chapter(one).figure_number(name):
            return _linked(f"Figure {number}", one, figure_anchor(name), chapter, address)
    raise ValueError(f"the text of {chapter} refers to {name}, which is shown neither there nor in its own chapter.")


def title(name: str, chapter: str, address: Address | None) -> str:
    """Return the title of the chapter `name`, with a link if `address` is given. Raise ValueError if there is no such
    chapter.
    """
    return _linked(lessons.chapter(name).title(), name, "", chapter, address)


def heading_anchor(head: str) -> str:
    """Return the anchor of a heading, which is its words in lower case, joined by "-"."""
    return "-".join("".join(c if c.isalnum() else " " for c in head.lower()).split())


def figure_anchor(name: str) -> str:
    """Return the anchor of the figure with this full name."""
    return f"figure-{name.replace('.', '-')}"


def fold_anchor(title: str, chapter: str) -> str:
    """Return the anchor of the fold with this title in a chapter's text."""
    return f"fold-{chapter}-{heading_anchor(title)}"


def _linked(words: str, there: str, anchor: str, here: str, address: Address | None) -> str:
    if address is None:
        return words
    return f"[{words}]({f'#{anchor}' if there == here and anchor else address(there, anchor)})"
