"""Quiz questions for Moodle, in its GIFT format (docs.moodle.org/en/GIFT_format), with random numbers.

Answers and explanations come from the chapter's golden file; nothing is run.
"""

import html
import re

from markdown_it import MarkdownIt

from lessons.chapters import Chapter

SPECIAL = re.compile(r"([\\~=#{}:])")
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$", re.DOTALL)


def gift(chapter: Chapter, seed: int) -> str:
    """Return the chapter's quiz as GIFT, with parameters drawn with this seed. Raise ValueError if there is no quiz."""
    if not chapter.items:
        raise ValueError(f"chapter {chapter.name} has no quiz.")
    parts = [f"$CATEGORY: Lockstep/{_escaped(chapter.title())}"]
    for item in chapter.items:
        drawn = item.parameters(seed)
        answer = chapter.golden.answer(item.name, drawn)
        why = _html(item.explanation(drawn, answer))
        if item.choices:
            lines = [
                f"  {'=' if one.key == answer else '~'}{_html(one.says)}"
                + (f"#{_html(one.but)}" if one.but and one.key != answer else "")
                for one in item.choices
            ]
        else:
            unit = f" ({item.unit})" if item.unit else ""
            lines = [f"  #{answer:.6g}:{abs(item.within * answer):.3g}"]
        asked = item.question(drawn) + ("" if item.choices else unit)
        body = "\n".join([*lines, f"  ####{why}"])
        parts.append(f"::{_escaped(f'{chapter.name} {item.name}')}::[html]{_html(asked)} {{\n{body}\n}}")
    return "\n\n".join(parts) + "\n"


def _html(text: str) -> str:
    r"""Return Markdown as HTML for GIFT, with formulas as Moodle's filters expect them: \( ... \) and \[ ... \]."""
    formulas = FORMULA.findall(text)
    numbers = iter(range(len(formulas)))
    rendered = MarkdownIt("commonmark", {"html": False}).render(
        FORMULA.sub(lambda _: f"formula{next(numbers)}end", text)
    )
    for number, (display, inline) in enumerate(formulas):
        tex = rf"\[{html.escape(display)}\]" if display else rf"\({html.escape(inline)}\)"
        rendered = rendered.replace(f"formula{number}end", tex)
    paragraph = re.fullmatch(r"<p>((?:(?!<p>).)*)</p>\s*", rendered, re.DOTALL)
    return _escaped(paragraph[1] if paragraph else rendered)


def _escaped(text: str) -> str:
    """Return text escaped for GIFT: on one line, with a backslash before special characters."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))
