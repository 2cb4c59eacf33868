"""A table of text in HTML, for pages and reports."""

from collections.abc import Iterable, Sequence
from html import escape


class Html(str):
    """Text that is HTML already; all other text is escaped."""


def html_table(heads: Sequence[str], rows: Iterable[tuple[str, Iterable[str]]], kind: str = "") -> str:
    """Return a table with these column headings ("" for none) and rows (heading, cells); `kind` is its CSS class."""
    head = "".join(f"<th>{_inside(word)}</th>" if word else "<td></td>" for word in heads)
    body = "".join(
        f"<tr><th>{_inside(label)}</th>{''.join(f'<td>{_inside(cell)}</td>' for cell in cells)}</tr>"
        for label, cells in rows
    )
    shape = f' class="{kind}"' if kind else ""
    above = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<table{shape}>{above}<tbody>{body}</tbody></table>"


def _inside(text: str) -> str:
    return text if isinstance(text, Html) else escape(text)
