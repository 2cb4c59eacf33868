"""The five sources section by section: each method's module, and where the book shows it.

A method's source is the `Source:` line of its module. A figure shows a method if one of its recorded runs, or its own
code, trains with it; a chapter shows it if one of its figures does, or its text has the module's code.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs

import algorithms
import lessons
from algorithms import compression
from lessons.figure import read_statements

FILE = Path(__file__).with_name("surveys.toml")
ROOT = FILE.parents[2]


@dataclass(frozen=True)
class Method:
    """A work that one of the sources names. `method` or `compression` implements it, or `without` says why none
    does.
    """

    section: str
    reference: str
    work: str
    method: str = ""
    compression: str = ""
    without: str = ""
    note: str = ""

    @property
    def module(self) -> str:
        """The module's name, such as "algorithms.averaging.easgd"; "" if there is none."""
        if self.compression:
            return f"algorithms.compression.{self.compression}"
        return f"algorithms.{algorithms.family(self.method)}.{self.method}" if self.method else ""

    @property
    def name(self) -> str:
        """The name by which an experiment selects the method; "" if there is none."""
        return self.method or self.compression


@dataclass(frozen=True)
class Survey:
    """One of the works that the catalogue is based on; `key` is its entry in the bibliography."""

    key: str
    title: str
    venue: str
    result: str  # what its abstract says
    figure: str  # full name of the figure with its shape, or ""
    instead: str  # why there is none, or how the figure differs
    parts: str  # what its sections are called
    methods: tuple[Method, ...]


@cache
def sources() -> tuple[Survey, ...]:
    found = tomllib.loads(FILE.read_text("utf-8"))["sources"]
    return tuple(Survey(**{**one, "methods": tuple(Method(**method) for method in one["methods"])}) for one in found)


@cache
def read_source(module: str) -> str:
    """Return the source that a module declares, on one line. Raise ValueError if it declares none."""
    text = ast.get_docstring(ast.parse(ROOT.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8"))) or ""
    if (found := re.search(r"^Source: ((?:.+\n?)+)", text, re.MULTILINE)) is None:
        raise ValueError(f"{module} declares no source; add a line that begins with 'Source:'.")
    return " ".join(found[1].split())


@cache
def figures_of(name: str) -> tuple[str, ...]:
    """Return the full names of the figures that show an algorithm or a compression, in the book's order."""
    return tuple(figure for chapter in lessons.CHAPTERS for figure, shown in _shown(chapter).items() if name in shown)


@cache
def chapters_of(name: str) -> tuple[str, ...]:
    """Return the chapters that show an algorithm or a compression."""
    found = [figure.partition(".")[0] for figure in figures_of(name)]
    for chapter in lessons.CHAPTERS:
        text = ROOT / "lessons" / chapter / "text.md"
        if text.is_file() and re.search(rf"\{{\{{ code algorithms\.\w+\.{name}\b", text.read_text("utf-8")):
            found.append(chapter)
    return tuple(chapter for chapter in lessons.CHAPTERS if chapter in found)


@cache
def _shown(chapter: str) -> dict[str, set[str]]:
    """Return {figure: names of the algorithms and compressions that it uses} for a chapter's own figures."""
    statements = read_statements(ROOT / "lessons" / chapter)
    defined = {name: node for node in statements for name in _names(node)}
    golden = ROOT / "lessons" / chapter / "golden.json"
    recorded = lessons.chapter(chapter).golden.figures if golden.is_file() else {}
    known = {*algorithms.names(), *compression.COMPRESSIONS}
    found = {}
    for node in statements:
        if isinstance(node, ast.FunctionDef) and any("figure" in ast.dump(d) for d in node.decorator_list):
            full = f"{chapter}.{node.name}"
            runs = recorded[full].runs if full in recorded else ()
            queries = [parse_qs(run) for run in runs]
            trained = {q.get("algorithm", ["sync_sgd"])[0] for q in queries} | {
                word for q in queries for word in q.get("compression", ())
            }
            found[full] = trained & known or _words(node, defined) & known
    return found


def _names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        return [name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    return [node.name] if isinstance(node, ast.FunctionDef) else []


def _words(node: ast.AST, defined: dict[str, ast.stmt], seen: frozenset[str] = frozenset()) -> set[str]:
    """Return the strings in a function and in everything it refers to, except column names and the values of settings
    other than `algorithm` and `compression`.
    """
    words: set[str] = set()
    for statement in node.body if isinstance(node, ast.FunctionDef) else [node]:
        others = {id(value) for part in ast.walk(statement) for value in _other_values(part)}
        for part in ast.walk(statement):
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and id(part) not in others:
                words.add(part.value)
            elif isinstance(part, ast.Name) and part.id in defined and part.id not in seen:
                words |= _words(defined[part.id], defined, seen | {part.id})
    return words


def _other_values(part: ast.AST) -> Iterator[ast.AST]:
    """Yield the values given to settings other than `algorithm` and `compression`, and the names of columns."""
    if isinstance(part, ast.keyword) and part.arg not in ("algorithm", "compression"):
        yield part.value
    elif isinstance(part, ast.Dict):
        for key, value in zip(part.keys, part.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in ("update", "schedule"):
                yield value
    elif isinstance(part, ast.Subscript):
        yield part.slice
