"""Convert TeX formulas to plain text for a terminal, with pylatexenc."""

import re
from functools import cache

from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

CODE = re.compile(r"(?s)```.*?```|`[^`\n]*`")
FORMULA = re.compile(r"(?s)\$\$(.*?)\$\$|\$([^$]+)\$")
SPACE = re.compile(r"\\[,;:! ]")
RAISED = re.compile(r"([_^])\{((?:[^{}]|\{[^{}]*\})*)\}")
FRACTION = re.compile(r"\\[td]frac(?![A-Za-z])")  # pylatexenc would not read what follows these as their arguments
FUNCTION = re.compile(r"\\(sin|cos|ln|log|min|max)(?![A-Za-z_])")
MARKS = re.compile(r"([*_\[\]<>`#])")


def plain(formula: str) -> str:
    r"""Return a formula as one line of text.

    >>> plain(r"\eta\, h = \frac{S-1}{M+S-1} \cdot w_{N+b}")
    'η h = (S-1)/(M+S-1)· w_(N+b)'
    """
    formula = FUNCTION.sub(r"\1~", FRACTION.sub(r"\\frac", formula))
    formula = RAISED.sub(lambda found: found[1] + _bracketed(SPACE.sub("", found[2])), SPACE.sub("~", formula))
    return " ".join(_converter().latex_to_text(f"${formula}$").split())


def readable(markdown: str) -> str:
    """Return Markdown with formulas as plain text. Display formulas become paragraphs, and code stays unchanged."""
    code: list[str] = []

    def kept(found: re.Match) -> str:
        code.append(found[0])
        return f"\x00{len(code) - 1}\x00"

    def shown(found: re.Match) -> str:
        return f"\n\n    {plain(found[1])}\n\n" if found[1] else MARKS.sub(r"\\\1", plain(found[2]))

    text = FORMULA.sub(shown, CODE.sub(kept, markdown))
    return re.sub("\x00(\\d+)\x00", lambda found: code[int(found[1])], text)


def _bracketed(text: str) -> str:
    """Return `text` in brackets, unless it is a single symbol or has brackets already."""
    one = len(text) == 1 or re.fullmatch(r"\\[A-Za-z]+", text) or (text[0], text[-1]) == ("(", ")")
    return text if one else f"({text})"


def _fraction(node, l2tobj) -> str:
    above, below = (l2tobj.nodelist_to_text([part]).strip() for part in node.nodeargs[-2:])
    return "/".join(part if re.fullmatch(r"[\w.∂']+|[\w∂]+ \w+", part) else f"({part})" for part in (above, below))


@cache
def _converter() -> LatexNodes2Text:
    macros = get_default_latex_context_db()
    macros.add_context_category("fractions", prepend=True, macros=[MacroTextSpec("frac", simplify_repl=_fraction)])
    return LatexNodes2Text(latex_context=macros, math_mode="text", strict_latex_spaces=False)
