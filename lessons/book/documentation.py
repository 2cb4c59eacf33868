"""Build the documentation next to the book from Markdown: the project's documents, a page per algorithm, and the
reference.

Everything is made from existing files: README, CONTRIBUTING, docs/ and the modules. All pages are in one folder. For
example, docs/decisions/house.md becomes decisions_house.html, and algorithms/averaging/easgd.py becomes
algorithm_easgd.html.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache

import algorithms
import lessons
from algorithms.catalogue import CATALOGUE
from knobs import Knobs, allowed_values, condition, meaning_of_none
from lessons import references, survey
from lessons.book.chapter import address
from lessons.markup import ROOT
from lessons.survey import costs

TEXTS = {
    "readme": "README.md",
    "contributing": "CONTRIBUTING.md",
    "authors": "lessons/README.md",
    "benchmarks": "tests/benchmarks/RESULTS.md",
    "agents": "AGENTS.md",
}
"""Page -> a document of the project outside docs/."""
REFERENCE = {
    "experiments": ("experiments/__init__.py", "experiments/specification/experiment.py", "experiments/runs/record.py"),
    "cluster": ("cluster/comm.py", "cluster/network.py", "cluster/faults.py"),
    "algorithms": ("algorithms/algorithm.py", "algorithms/codec.py"),
    "workloads": ("workloads/workload.py", "workloads/task.py"),
    "knobs and traces": ("knobs.py", "tracing.py"),
}
"""Room -> the modules that a user's own program starts from."""
PICTURE = re.compile(r"<picture>.*?</picture>|<img [^>]*>", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def pages() -> dict[str, tuple[str, str]]:
    """Return all pages as {page: (title, Markdown)}. The first one is the front page, "documentation"."""
    found = {"documentation": ("Documentation", _front()), "algorithms": ("Algorithms", _algorithms())}
    found["reference"] = ("Reference", _reference())
    for page, path in _texts().items():
        text = _with_links((ROOT / path).read_text("utf-8"), path)
        found[page] = (_title(text), text)
    for name in algorithms.names():
        text = _algorithm(name)
        found[f"algorithm_{name}"] = (_title(text), text)
    return found


@cache
def _texts() -> dict[str, str]:
    """Return {page: path} of the project's documents, except those that are already part of the book."""
    docs = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    named = {path.removeprefix("docs/").removesuffix(".md").replace("/", "_").lower(): path for path in docs}
    named |= {page: path for page, path in TEXTS.items() if (ROOT / path).is_file()}
    return {page: path for page, path in named.items() if page != "bibliography"}


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ").strip("`")


def _with_links(text: str, path: str) -> str:
    """Return a text with its links leading to pages of the site. Links to other files become plain text, and pictures
    are removed.
    """
    to_page = {file: page for page, file in _texts().items()}
    to_page |= {"GLOSSARY.md": "glossary", "docs/bibliography.md": "bibliography"}

    def led(found: re.Match) -> str:
        picture, words, target, anchor = found.groups()
        file = (ROOT / path).parent.joinpath(target).resolve()
        page = to_page.get(file.relative_to(ROOT).as_posix()) if file.is_relative_to(ROOT) else None
        return "" if picture else f"[{words}]({page}.html{anchor or ''})" if page else words

    return LINK.sub(led, PICTURE.sub("", text))


def _front() -> str:
    texts = {page: _title((ROOT / path).read_text("utf-8")) for page, path in _texts().items()}
    decisions = {page: title for page, title in texts.items() if page.startswith("decisions_")}
    others = {page: title for page, title in texts.items() if not page.startswith("decisions_")}

    def listed(some: dict[str, str]) -> str:
        return "\n".join(f"- [{title}]({page}.html)" for page, title in some.items())

    first = {"readme": "What Lockstep is, and how to start it", "algorithms": "Algorithms, a page for each"}
    first |= {"contributing": "How to add an algorithm, a kernel, a chapter", "reference": "Reference"}
    first = {page: title for page, title in first.items() if page in texts or page in ("algorithms", "reference")}
    rest = {page: title for page, title in others.items() if page not in first}
    more = {"More": listed(rest), "Decisions, room by room": listed(decisions)}
    parts = [f"# Documentation\n\n{listed(first)}", *(f"## {head}\n\n{text}" for head, text in more.items() if text)]
    return "\n\n".join(parts) + "\n"


def _algorithms() -> str:
    """Return the page that lists all algorithms by family, each with the first paragraph of its docstring."""
    parts = [
        "# Algorithms",
        "Each algorithm is one file. Its page gives the idea, formula, cost and source, then the file itself.",
    ]
    families: dict[str, list[str]] = {}
    for path, title in CATALOGUE.items():
        family, _, name = path.partition(".")
        first = (inspect.getdoc(algorithms.module(name)) or "").partition("\n\n")[0].replace("\n", " ")
        families.setdefault(family, []).append(f"- [{title}](algorithm_{name}.html): {_escaped(first)}")
    for family, lines in families.items():
        parts += [f"## {family.replace('_', ' ').capitalize()}", "\n".join(lines)]
    return "\n\n".join(parts) + "\n"


def _algorithm(name: str) -> str:
    module, method = algorithms.module(name), algorithms.find(name)
    path = f"algorithms/{algorithms.family(name)}/{name}.py"
    parts = [
        f"# {CATALOGUE[f'{algorithms.family(name)}.{name}']}",
        f"`{path}`, and `lockstep run {name}`",
        _escaped_docstring(inspect.getdoc(module) or ""),
        "## Settings",
        _settings(method.Settings),
    ]
    if method.equivalences:
        exact = {"BIT": "bit for bit", "RND": "except for rounding"}
        told = [f"- {_escaped(one.claim)} ({exact[one.exactness]})" for one in method.equivalences]
        parts += ["## When it equals another algorithm", "\n".join(told)]
    if cost := costs.every().get(name):
        quantities = [name for name in costs.QUANTITIES if name != "server" or cost.server] + ["approximation"]
        table = [f"| {quantity} | {_escaped(cost.formula_text(quantity))} |" for quantity in quantities]
        parts += ["## What a step costs", "\n".join(["| | |", "|---|---|", *table]), survey.symbols_line()]
    if shown := [*_figures(name)]:
        parts += ["## Figures that show it", "\n".join(shown)]
    parts += ["## The file", f"```python\n{(ROOT / path).read_text('utf-8')}```"]
    return "\n\n".join(parts) + "\n"


def _settings(kind: type[Knobs]) -> str:
    lines = ["| setting | default | allowed | what it is |", "|---|---|---|---|"]
    for name, field in kind.model_fields.items():
        when = condition(kind, name)
        what = f"{field.description}{f' ({when})' if when else ''}"
        default = meaning_of_none(kind, name) if field.default is None else str(field.default) or "none"
        lines.append(f"| `{name}` | {_escaped(default)} | {_escaped(allowed_values(kind, name))} | {_escaped(what)} |")
    return "\n".join(lines)


def _figures(name: str) -> Iterator[str]:
    for figure in survey.figures_of(name):
        chapter, _, _ = figure.partition(".")
        if number := lessons.chapter(chapter).figure_number(figure):
            link = address(chapter, references.figure_anchor(figure))
            yield f"- [Figure {number}]({link}): {_escaped(lessons.find(figure).question)}"


def _reference() -> str:
    """Return the reference: signatures and docstrings of the functions and classes that a user's own program starts
    from.
    """
    parts = ["# Reference", "The functions and classes that your own program starts from, with their docstrings."]
    for room, paths in REFERENCE.items():
        parts.append(f"## {room[0].upper()}{room[1:]}")
        for path in paths:
            tree = ast.parse((ROOT / path).read_text("utf-8"))
            parts += [f"### `{path}`", _escaped_docstring(ast.get_docstring(tree) or "")]
            for node in tree.body:
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                    parts += _described(node)
    return "\n\n".join(part for part in parts if part) + "\n"


def _described(node: ast.FunctionDef | ast.ClassDef) -> list[str]:
    """Return the signature and docstring of a definition as Markdown.

    For a class, add the same for its public methods that have a docstring.
    """
    text = _escaped_docstring(ast.get_docstring(node) or "")
    if isinstance(node, ast.FunctionDef):
        return [f"```python\n{_signature(node)}\n```", text]
    bases = f"({', '.join(map(ast.unparse, node.bases))})" if node.bases else ""
    methods = [
        f"```python\n{node.name}.{_signature(one).removeprefix('def ')}\n```\n\n{_escaped_docstring(said)}"
        for one in node.body
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_") and (said := ast.get_docstring(one))
    ]
    return [f"```python\nclass {node.name}{bases}\n```", text, *methods]


def _signature(node: ast.FunctionDef) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {node.name}({ast.unparse(node.args)}){returns}"


def _escaped_docstring(text: str) -> str:
    """Return a docstring as Markdown that shows it literally.

    Lines indented by four spaces are code in Markdown already. In the others, characters with a meaning in Markdown are
    escaped.
    """
    return "\n".join(line if line.startswith("    ") else _escaped(line) for line in text.splitlines())


def _escaped(text: str) -> str:
    """Return plain text as Markdown that shows it literally; text in backticks is code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>|$\\\[\]])", r"\\\1", part) for part in parts)
