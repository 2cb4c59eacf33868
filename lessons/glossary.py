"""Explain terms of GLOSSARY.md where a text first uses them: the term is underlined, and its meaning appears when the
reader points at it.

Not every term is explained: many of the glossary's words, such as report or place, are everyday words in a text.
"""

import re
from functools import cache
from html import escape

from installation import document

EXPLAINED = (
    "all-gather", "all-reduce", "backup worker", "barrier", "bubble", "cache line", "codec", "collective",
    "critical batch", "curvature", "epoch", "error feedback", "false sharing", "flush", "learning rate",
    "loss scaling", "lost addition", "master weights", "micro-batch", "mini-batch", "mixing matrix", "momentum",
    "optimizer", "rank", "reduce-scatter", "replica", "re-materialisation", "stage", "staleness", "stash",
    "straggler", "superstep", "velocity", "vertical sync", "weight stashing",
)  # fmt: skip
"""Terms that always have the glossary's meaning."""
TABLES = document("GLOSSARY.md")
ROW = re.compile(r"(?m)^\| ([^|]+?) \| ([^|]+?) \| [^|]+? \|$")
NO_PROSE = re.compile(
    r"(?ms)^(?:```|~~~).*?^(?:```|~~~)\s*$|\$\$.*?\$\$|`[^`]*`|\$[^$]*\$|!?\[[^\]]*\]\([^)]*\)|^#+ [^\n]*|<[^>]+>"
)
SOURCES = re.compile(r"(?m)^## Sources$")


@cache
def meanings() -> dict[str, str]:
    """Return {term: meaning} for the terms that are explained, with the longest terms first."""
    rows = dict(ROW.findall(TABLES.read_text("utf-8")))
    return {term: rows[term] for term in sorted(EXPLAINED, key=len, reverse=True)}


def anchor(term: str) -> str:
    """Return a term in the form that anchors use, such as "micro-batch" or "vertical-sync"."""
    return term.replace(" ", "-")


def page() -> str:
    """Return GLOSSARY.md with an anchor, such as "term-stage", for each term that texts explain."""

    def row(found: re.Match) -> str:
        term = found[1]
        return (
            found[0].replace(term, f'<span id="term-{anchor(term)}">{term}</span>', 1)
            if term in EXPLAINED
            else found[0]
        )

    return ROW.sub(row, TABLES.read_text("utf-8"))


class Glossary:
    """A glossary for one text, which explains each term only once, in prose before the list of sources. Give it the
    parts of the text in order, from the beginning.
    """

    def __init__(self):
        self._left = set(meanings())

    def explain(self, markdown: str) -> str:
        """Return `markdown` with each term marked up as <abbr> where it first occurs. Later calls leave out terms that
        are already explained.

        Terms in code, formulas, links and headings are not marked.
        """
        parts, place = [], 0
        for other in NO_PROSE.finditer(markdown):
            parts += [self._prose(markdown[place : other.start()]), other[0]]
            place = other.end()
            if SOURCES.match(other[0]):  # do not mark titles of works
                self._left.clear()
        return "".join([*parts, self._prose(markdown[place:])])

    def _prose(self, text: str) -> str:
        return _any_term().sub(self._mark, text)

    def _mark(self, found: re.Match) -> str:
        term = found[1].lower().replace("\n", " ")
        if term not in self._left:
            return found[0]
        self._left.remove(term)
        meaning = escape(meanings()[term])
        return f'<abbr class="term" tabindex="0" data-term="{anchor(term)}" title="{meaning}">{found[0]}</abbr>'


@cache
def _any_term() -> re.Pattern:
    """Return a pattern that matches any term, including plurals and terms that are broken across lines."""
    terms = "|".join(re.escape(term).replace(r"\ ", r"\s") for term in meanings())
    return re.compile(rf"(?i)(?<![\w-])({terms})(?:s|es)?(?![\w-])")
