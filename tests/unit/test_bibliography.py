"""The bibliography: every source that the house names has an entry, and every entry is used where it says."""

import ast
import functools
import re
import unicodedata
from pathlib import Path
from typing import NamedTuple

import lessons
from tests.sources import FILES, ROOT, nodes

ENTRY = re.compile(r"- \*\*(.+?) (\d{4}[a-z]?)\*\* (.+?) For (`.+?`)\. (.+)")
SIGN = re.compile(
    r"arXiv:\d{4}\.\d{4,5}|OpenReview \w+|\b(?:19[3-9]\d|20[0-2]\d)\b"
)  # that a work is named: id or year
MARK = re.compile(r"Checked: .+\.|From memory\.")


class Entry(NamedTuple):
    """A work: first author, the ids and years it goes by, the modules that name it, and what was checked of it."""

    surname: str
    year: str
    signs: frozenset[str]
    modules: tuple[str, ...]
    mark: str

    def names(self, sign: str, text: str) -> bool:
        """Tell whether a sign in a text is this work's."""
        # `in` first: looking for a few hundred names in each clause by pattern alone takes seconds
        return sign in self.signs and self.surname in text and re.search(rf"\b{self.surname}\b", text) is not None


def plain(text: str) -> str:
    """Return a text in one line and without accents, as names are spelled in code."""
    letters = unicodedata.normalize("NFKD", " ".join(text.split())).translate(str.maketrans("øØłŁ", "oOlL"))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def module(path: Path) -> str:
    """Return a file's module; a chapter of the book is one."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] == "lessons" and parts[1] in lessons.CHAPTERS:
        parts = parts[:2]
    return ".".join(parts).removesuffix(".__init__")


@functools.cache
def entries() -> tuple[Entry, ...]:
    """Return the entries as they stand."""
    text = (ROOT / "docs" / "bibliography.md").read_text()
    found = []
    for item in re.findall(r"^- .*(?:\n  .*)*", text.split("## A", 1)[1], re.MULTILINE):
        match = ENTRY.fullmatch(plain(item))
        assert match, f"not an entry: {item}"
        surname, year, work, rooms, mark = match.groups()
        signs = frozenset(SIGN.findall(work)) | {year[:4]}
        found.append(Entry(surname, year, signs, tuple(re.findall(r"`(.+?)`", rooms)), mark))
    return tuple(found)


def cited(path: Path) -> list[str]:
    """Return the sources that docstrings and figures of a file name."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            found += re.findall(r"^Source(?: of .*?)?: ((?:.+\n?)+)", ast.get_docstring(node) or "", re.MULTILINE)
        elif isinstance(node, ast.keyword) and node.arg == "source" and isinstance(node.value, ast.Constant):
            found.append(str(node.value.value))
    return found


@functools.cache
def clauses() -> tuple[tuple[str, str], ...]:
    """Return (module, one work or more of one author), of docstrings, figures and the ends of chapters."""
    sources = [(module(path), source) for path in FILES for source in cited(path)]
    for path in ROOT.glob("lessons/*/text.md"):
        sources += [(module(path), line) for line in path.read_text().split("## Sources")[-1].split("\n- ")[1:]]
    return tuple((name, plain(clause)) for name, source in sources for clause in source.split(";"))


@functools.cache
def written(name: str) -> str:
    """Return all that a module says."""
    path = ROOT.joinpath(*name.split("."))
    chapter = [file for ending in ("py", "md", "toml") for file in path.rglob(f"*.{ending}")]
    files = (name.startswith("lessons.") and chapter) or [
        file for file in (path.with_suffix(".py"), path / "__init__.py") if file.exists()
    ]
    assert files, f"there is no module {name}"
    return plain(" ".join(file.read_text() for file in files))


def test_every_source_that_is_named_has_an_entry_that_lists_its_module():
    missing = {
        f"{name}: {sign} in: {clause}"
        for name, clause in clauses()
        for sign in SIGN.findall(clause)
        if not any(name in entry.modules and entry.names(sign, clause) for entry in entries())
    }
    assert not missing, "docs/bibliography.md lacks\n" + "\n".join(sorted(missing))


def test_every_entry_is_named_by_the_modules_that_it_lists():
    for entry in entries():
        for name in entry.modules:
            text = written(name)
            named = any(entry.names(sign, text) for sign in entry.signs)
            assert named, f"{name} does not name {entry.surname} {entry.year}: take it out of the entry"


def test_entries_stand_in_the_order_of_the_alphabet_and_say_what_was_checked():
    keys = [(entry.surname.lower(), entry.year) for entry in entries()]
    assert keys == sorted(set(keys)) and len(keys) > 100
    assert [entry for entry in entries() if not MARK.fullmatch(entry.mark)] == []


def test_sources_are_found_where_they_stand():
    assert ("algorithms.averaging.slowmo", "2020") in {
        (name, sign) for name, c in clauses() for sign in SIGN.findall(c)
    }
    assert {"lessons.averaging", "kernels.sparse.rows", "workloads.layers"} <= {name for name, _ in clauses()}
