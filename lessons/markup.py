"""Prose: a chapter's text, with what is live in it.

A mark stands in double braces, with a space on each side. Alone in its line:

    {{ waiting_for_everybody }}           a figure of this chapter; large_batches.warm_up is one of another
    {{ code algorithms.parts.optimizers.Sgd }}     the source of a module, class or function, as it is now
    {{ predict speed_up }}                a quiz item, to be answered before the text goes on

and inside a line, a number out of the rows of a figure, or how many times a second one goes into it:

    {{ value waiting_for_everybody.step where law=cloud, workers=32 : .1f }}
    {{ value tail.seconds where backups=0 over tail.seconds where backups=1 : .1f }}

What follows the colon is Python's format (.3g if there is none). Formulas keep their braces: {{a}} is no mark.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lessons.golden import Golden

ROOT = Path(__file__).resolve().parents[1]
MARK = re.compile(r"\{\{ (.+?) \}\}")
ALONE = re.compile(r"^\{\{ ([^{}]+) \}\}\s*$")
NAME = re.compile(r"^(\w+\.)?\w+$")
CODE_BLOCK = re.compile(r"^\s*(```|~~~)")


class Text(NamedTuple):
    """Markdown, numbers filled in."""

    markdown: str


class LiveFigure(NamedTuple):
    """A live figure, by its full name: "stragglers.waiting_for_everybody"."""

    figure: str


class Code(NamedTuple):
    """A piece of our source: where it stands, and what it says."""

    name: str
    path: str
    line: int
    source: str


class Predict(NamedTuple):
    """A quiz item by name, asked before the next figure."""

    item: str


Block = Text | LiveFigure | Code | Predict


def blocks(text: str, chapter: str, golden: Golden) -> list[Block]:
    """The parts of `text`, a chapter's, in order. ValueError in one sentence if a mark cannot be understood."""
    found: list[Block] = []
    lines: list[str] = []

    def close() -> None:
        if markdown := "\n".join(lines).strip():
            found.append(Text(markdown))
        lines.clear()

    for line, code in _lines(text):
        alone = None if code else ALONE.match(line)
        if alone is None or alone[1].startswith("value "):
            lines.append(line if code else MARK.sub(lambda mark: _number(mark[1], chapter, golden), line))
            continue
        close()
        kind, _, name = alone[1].rpartition(" ")
        if kind == "code":
            found.append(source(name))
        elif kind == "predict":
            found.append(Predict(name))
        elif not kind and NAME.match(name):
            found.append(LiveFigure(full_name(name, chapter)))
        else:
            raise ValueError(f"{chapter}: the mark {alone[0][:80]!r} means nothing; see lessons/markup.py.")
    close()
    return found


def figure_names(text: str, chapter: str) -> list[str]:
    """The full names of the figures that `text` draws or takes numbers from, in the order of first mention."""
    names: dict[str, None] = {}
    for line, code in _lines(text):
        for mark in () if code else MARK.finditer(line):
            if mark[1].startswith("value "):
                names |= dict.fromkeys(full_name(place.rpartition(".")[0], chapter) for place, _ in _places(mark[1]))
            elif NAME.match(mark[1]):
                names[full_name(mark[1], chapter)] = None
    return list(names)


def full_name(name: str, chapter: str) -> str:
    """The full name of a figure that chapter `chapter` calls `name`."""
    return name if "." in name else f"{chapter}.{name}"


def source(name: str) -> Code:
    """The source of "package.module", "package.module.function" or "package.module.Class.method"; nothing is imported.

    Comments right above belong to it. ValueError if there is no such thing.
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
    """What a statement defines."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        return getattr(target, "id", "")
    return getattr(node, "name", "")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """(line, whether it belongs to a block of code)."""
    inside = False
    for line in text.splitlines():
        fence = bool(CODE_BLOCK.match(line))
        yield line, inside or fence
        inside ^= fence


def _number(mark: str, chapter: str, golden: Golden) -> str:
    """What stands in place of a mark with a number."""
    if not mark.startswith("value "):
        raise ValueError(f"{chapter}: the mark {mark[:80]!r} must stand alone in its line.")
    numbers = []
    for place, where in _places(mark):
        figure, _, column = place.rpartition(".")
        rows = golden.figure(full_name(figure, chapter)).rows
        fitting = [row for row in rows if all(_same(row.get(name), wanted) for name, wanted in where.items())]
        if len(fitting) != 1 or column not in fitting[0]:
            raise ValueError(f"{chapter}: {len(fitting)} rows fit {mark[:120]!r}; expected one with this column.")
        numbers.append(fitting[0][column])
    form = mark.rpartition(" : ")[2] if " : " in mark else ".3g"
    value = numbers[0] if len(numbers) == 1 else numbers[0] / numbers[1]
    if isinstance(value, str):
        return value
    return format(round(value) if form.endswith("d") else value, form)


def _places(mark: str) -> list[tuple[str, dict[str, str]]]:
    """(figure.column, {column: value}) of each number that a mark names."""
    found = []
    for part in mark.removeprefix("value ").rpartition(" : ")[0 if " : " in mark else 2].split(" over "):
        place, _, conditions = part.partition(" where ")
        pairs = (condition.partition("=") for condition in conditions.split(",") if condition)
        found.append((place.strip(), {name.strip(): wanted.strip() for name, _, wanted in pairs}))
    return found


def _same(value: object, text: str) -> bool:
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return str(value) == text
    try:
        return float(value) == float(text)
    except ValueError:
        return False
