"""Convert the book's Markdown to HTML, with formulas for KaTeX, highlighted code, and anchors on headings.

Formulas stay TeX in elements of class `math`, which assets/formulas.js gives to KaTeX when the page opens.
"""

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.dollarmath import dollarmath_plugin
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from lessons.references import heading_anchor


class Heading(NamedTuple):
    """A heading of the text, with its level (2 for a section), its words and its anchor."""

    level: int
    words: str
    anchor: str


def code(source: str, language: str) -> Markup:
    """Return source code as HTML with Pygments' classes, or without highlighting if the language is unknown."""
    try:
        lexer = get_lexer_by_name(language or "text", stripnl=False)
    except ClassNotFound:
        return Markup(html.escape(source))
    return Markup(highlight(source, lexer, HtmlFormatter(nowrap=True)))


def _math(tex: str, options: dict) -> str:
    return html.escape(tex.strip())


def _inline_code(renderer, tokens: list[Token], place: int, options, env) -> str:
    """Return inline code as HTML. A browser may break the line at a space in it, but not after the hyphens of an
    option.
    """
    words = re.sub(r"(?<!\S)--?\w[\w-]*", r"<span>\g<0></span>", html.escape(tokens[place].content))
    return f"<code>{words}</code>"


_READER = (
    MarkdownIt("commonmark", {"typographer": True, "highlight": lambda s, name, _: str(code(s, name))})
    .enable(["table", "smartquotes"])
    .use(dollarmath_plugin, allow_labels=False, double_inline=True, renderer=_math)
)
_READER.add_render_rule("code_inline", _inline_code)


def render(text: str) -> Markup:
    """Convert Markdown to HTML. Headings have anchors, and wide tables scroll in a box of their own."""
    tokens = _READER.parse(text)
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            token.attrSet("id", heading_anchor(tokens[place + 1].content))
    made = _READER.renderer.render(tokens, _READER.options, {})
    made = made.replace("<table>", '<div class="table" tabindex="0"><table>').replace("</table>", "</table></div>")
    made = made.replace("<pre>", '<pre tabindex="0">')  # long lines scroll
    return Markup(made)


def inline(text: str) -> Markup:
    """Convert inline Markdown, or a single paragraph, to HTML."""
    return Markup(_READER.renderInline(" ".join(text.split())))


def headings(text: str) -> list[Heading]:
    """Return the headings of a text in order, without the title."""
    return [heading for heading, _ in sections(text) if heading is not None]


def sections(text: str) -> list[tuple[Heading | None, str]]:
    """Return (heading, words) for each section of a text, for the search. The heading is None for words that come
    before the first heading below the title.
    """
    found: list[tuple[Heading | None, list[str]]] = [(None, [])]
    tokens = _READER.parse(text)
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.type == "fence":
            found[-1][1].append(token.content)
        elif token.type == "inline":
            words = "".join(_words(token))
            if before.type == "heading_open":
                if before.tag != "h1":
                    found.append((Heading(int(before.tag[1]), words, heading_anchor(token.content)), []))
            else:
                found[-1][1].append(words)
    return [(heading, " ".join(" ".join(lines).split())) for heading, lines in found]


def _words(token: Token) -> Iterator[str]:
    for child in token.children or ():
        if child.type != "html_inline":
            yield child.content if child.content else " " if child.type in ("softbreak", "hardbreak") else ""
