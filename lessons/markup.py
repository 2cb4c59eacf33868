"""Markup of a chapter's text: live figures, source code, predictions and numbers in Markdown.

A mark is in double braces, with a space on each side. Alone on its line:

    {{ waiting_for_everybody }}                    a figure of this chapter; large_batches.warm_up is one of another
    {{ warm_up try=batch,workers }}                and settings to try where a page computes (lessons/live)
    {{ code algorithms.parts.optimizers }}         the current source of a module, class or function
    {{ predict speed_up }}                         a quiz item, to be answered before the text continues
    {{ schedule zb_h1 ranks=4 chunks=8 }}          a schedule that plays (lessons.movement)
    {{ timeline algorithm=easgd workers=8 }}       the timeline of a simulated run
    {{ fold Where the edge is }}                   folds everything (lessons.folds) down to {{ end fold }}

Inside a line, a reference (lessons.references):

    {{ ref more_machines }}                        "Figure 5.1", linked; the figure is in this text or another chapter
    {{ chapter staleness }}                        the title of a chapter, linked

or a Jinja expression on values from the rows of figures (lessons.figure.value); the filter f is Python's
`format`, by default .3g:

    {{ value("waiting_for_everybody.step", law="cloud", workers=32) | f(".1f") }}
    {{ (value("tail.seconds", backups=0) / value("tail.seconds", backups=1)) | f(".1f") }}

Formulas keep their braces: {{a}} is not a mark.
"""

import ast
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, TemplateError
from jinja2.environment import TemplateExpression
from jinja2.sandbox import SandboxedEnvironment

from lessons import folds, movement, references
from lessons.figure import value
from lessons.glossary import Glossary
from lessons.golden import Golden
from lessons.links import link_identifiers
from lessons.movement import Schedule as Schedule
from lessons.movement import Timeline as Timeline
from lessons.references import Address

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"\{\{ (.+?) \}\}")
ALONE = re.compile(r"^\{\{ ([^{}]+) \}\}\s*$")
ALONE_IN_TEXT = re.compile(r"(?m)^\{\{ [^{}(]+ \}\}\s*$")
NAME = re.compile(r"^(\w+\.)?\w+$")
FIGURE = re.compile(r"^((?:\w+\.)?\w+)(?: try=([\w,]+))?$")
VALUE = re.compile(r'\bvalue\("([^"]+)\.')  # up to the last dot, which precedes the column
JINJA = SandboxedEnvironment(undefined=StrictUndefined)
JINJA.filters["f"] = lambda value, spec: format(value, spec).replace("%", "\N{NO-BREAK SPACE}%")  # as in figures


class Text(NamedTuple):
    """Markdown with numbers inserted."""

    markdown: str


class LiveFigure(NamedTuple):
    """A live figure, given by its full name, such as "stragglers.waiting_for_everybody"."""

    figure: str
    tries: tuple[str, ...] = ()
    """Settings that a reader may change where the page can compute its runs."""


class Code(NamedTuple):
    """A piece of the project's source code, with its path and first line."""

    name: str
    path: str
    line: int
    source: str


class Predict(NamedTuple):
    """A quiz item, given by name, that the reader answers before the text continues."""

    item: str


class Fold(NamedTuple):
    """Blocks that stay closed until the reader opens them (lessons.folds)."""

    title: str
    blocks: tuple[Text | LiveFigure | Code | Schedule | Timeline, ...]

    @property
    def label(self) -> str:
        """The fold's heading, in Markdown."""
        return f"Deeper: {self.title}"


Block = Text | LiveFigure | Code | Predict | Schedule | Timeline | Fold
MOVEMENTS = {"schedule": movement.schedule, "timeline": movement.timeline}
REFERENCES = {"ref": references.figure, "chapter": references.title}


def blocks(text: str, chapter: str, golden: Golden, address: Address | None = None, draft: bool = False) -> list[Block]:
    """Return the blocks of this chapter's `text`, in order. Raise ValueError if a mark is invalid.

    With an `address`, references become links, and terms of the glossary are explained by <abbr>. In a fold they are
    explained again, because the reader may open it before the text explains them. In a draft, numbers of figures that
    are not recorded yet are "?".
    """
    found: list[Block] = []
    glossary = Glossary()
    folds.check(text, chapter)
    for title, piece in folds.pieces(text):
        parts = _blocks(piece, chapter, golden, address, draft)
        if address:
            parts = _explained(parts, Glossary() if title else glossary)
        found += [Fold(title, tuple(parts))] if title else parts
    return found


def _blocks(text: str, chapter: str, golden: Golden, address: Address | None, draft: bool) -> list[Block]:
    """Return the blocks of a piece of text without folds."""
    found: list[Block] = []
    lines: list[str] = []

    def close() -> None:
        if markdown := "\n".join(lines).strip():
            found.append(Text(markdown))
        lines.clear()

    for line, code in folds.lines(text):
        alone = None if code else ALONE.match(line)
        kind, _, rest = alone[1].partition(" ") if alone else ("", "", "")
        if alone is None or "(" in alone[1] or (kind in REFERENCES and rest):
            lines.append(
                line
                if code
                else link_identifiers(MARK.sub(lambda mark: _inline(mark[1], chapter, golden, address, draft), line))
            )
            continue
        close()
        if kind == "code":
            found.append(source(rest))
        elif kind == "predict":
            found.append(Predict(rest))
        elif kind in MOVEMENTS and rest:
            found.append(_movement(kind, rest, chapter))
        elif figure := FIGURE.match(alone[1]):
            tries = tuple(figure[2].split(",")) if figure[2] else ()
            found.append(LiveFigure(full_name(figure[1], chapter), tries))
        else:
            raise ValueError(f"{chapter}: the mark {alone[0][:80]!r} is invalid; see lessons/markup.py.")
    close()
    return found


def _explained(blocks: list[Block], glossary: Glossary) -> list[Block]:
    """Return the blocks with explanations of the terms that the glossary has not explained yet."""
    return [Text(glossary.explain(block.markdown)) if isinstance(block, Text) else block for block in blocks]


def figure_names(text: str, chapter: str) -> list[str]:
    """Return the full names of the figures that `text` shows or quotes, in the order of first mention."""
    names: dict[str, None] = {}
    for line, code in folds.lines(text):
        for mark in () if code else MARK.finditer(line):
            figure = FIGURE.match(mark[1])
            figures = [figure[1]] if figure else VALUE.findall(mark[1])
            names |= dict.fromkeys(full_name(figure, chapter) for figure in figures)
    return list(names)


def shown_figures(text: str, chapter: str) -> list[str]:
    """Return the full names of the figures that `text` shows, in order and without repetitions."""
    alone = [ALONE.match(line) for line, code in folds.lines(text) if not code]
    figures = [FIGURE.match(mark[1]) for mark in alone if mark]
    return list(dict.fromkeys(full_name(figure[1], chapter) for figure in figures if figure))


@lru_cache(maxsize=64)
def numbered_items(text: str, chapter: str) -> tuple[str, ...]:
    """Return what is numbered in `text`, in order: figures by their full names, and schedules and timelines by their
    links.
    """
    found: dict[str, None] = {}
    for mark in (ALONE.match(line) for line, code in folds.lines(text) if not code):
        kind, _, rest = mark[1].partition(" ") if mark else ("", "", "")
        if kind in MOVEMENTS and rest:
            found[_movement(kind, rest, chapter).link] = None
        elif mark and (figure := FIGURE.match(mark[1])):
            found[full_name(figure[1], chapter)] = None
    return tuple(found)


def predictions(text: str) -> list[str]:
    """Return the names of the quiz items that `text` asks readers to predict, in order."""
    alone = (ALONE.match(line) for line, code in folds.lines(text) if not code)
    return [mark[1].partition(" ")[2] for mark in alone if mark and mark[1].startswith("predict ")]


def movements(text: str, chapter: str) -> list[Schedule | Timeline]:
    """Return the schedules and timelines of `text`, in order."""
    alone = [ALONE.match(line) for line, code in folds.lines(text) if not code]
    words = [mark[1].partition(" ") for mark in alone if mark and "(" not in mark[1]]
    return [_movement(kind, rest, chapter) for kind, _, rest in words if kind in MOVEMENTS and rest]


def full_name(name: str, chapter: str) -> str:
    """Return the full name of a figure from the `name` that the chapter `chapter` uses for it."""
    return name if "." in name else f"{chapter}.{name}"


def source(name: str) -> Code:
    """Return the source of a module, class, function or method, such as "package.module.Class.method".

    Comments right above it are included. Nothing is imported. Raise ValueError if it does not exist.
    """
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:cut]).with_suffix(".py")
        if path.is_file() and path.is_relative_to(ROOT):
            break
    else:
        raise ValueError(f"there is no module for {name[:80]!r}.")
    text = path.read_text("utf-8")
    first, last = 1, text.count("\n") + 1
    node: ast.AST = ast.parse(text)
    lines = text.splitlines()
    for part in parts[cut:]:
        node = next((inner for inner in getattr(node, "body", ()) if _called(inner) == part), None)
        if node is None:
            raise ValueError(f"there is no {'.'.join(parts[cut:])!r} in {path.relative_to(ROOT)}.")
        first, last = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]), node.end_lineno
        while first > 1 and lines[first - 2].lstrip().startswith("#"):
            first -= 1
    return Code(name, path.relative_to(ROOT).as_posix(), first, "\n".join(lines[first - 1 : last]).strip("\n"))


def _called(node: ast.AST) -> str:
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return getattr(target, "id", "")
    return getattr(node, "name", "")


def _movement(kind: str, words: str, chapter: str) -> Schedule | Timeline:
    try:
        return MOVEMENTS[kind](words)
    except ValueError as error:
        raise ValueError(f"{chapter}: in the mark {f'{kind} {words}'[:120]!r}: {error}") from None


def _inline(mark: str, chapter: str, golden: Golden, address: Address | None, draft: bool) -> str:
    kind, _, name = mark.partition(" ")
    if kind not in REFERENCES or not NAME.match(name):
        quoted = [full_name(figure, chapter) for figure in VALUE.findall(mark)]
        unknown = draft and any(figure not in golden.figures for figure in quoted)
        return "?" if unknown else _number(mark, chapter, golden)
    try:
        return REFERENCES[kind](full_name(name, chapter) if kind == "ref" else name, chapter, address)
    except ValueError as error:
        raise ValueError(f"{chapter}: in the mark {mark[:80]!r}: {error}") from None


def _number(mark: str, chapter: str, golden: Golden) -> str:
    """Return the number that replaces a mark inside a line, as text."""
    if "(" not in mark:
        raise ValueError(f"{chapter}: the mark {mark[:80]!r} must stand alone on its line.")

    def from_figure(place: str, **where: Any) -> Any:
        figure, _, column = place.rpartition(".")
        return value(golden.figure(full_name(figure, chapter)).rows, column, **where)

    try:
        result = _compiled(mark)(value=from_figure)
        return format(result, ".3g") if isinstance(result, float) else str(result)
    except KeyError as column:
        raise ValueError(f"{chapter}: in the mark {mark[:120]!r}: there is no column {column}.") from None
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise ValueError(f"{chapter}: in the mark {mark[:120]!r}: {error}") from None


@cache
def _compiled(mark: str) -> TemplateExpression:
    return JINJA.compile_expression(mark, undefined_to_none=False)
