"""The glossary: each word has one meaning, is used where it says, and the words that were retired name nothing."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

from tests.sources import FILES, ROOT, nodes

CONTRACTS = ("Settings", "Codec")  # which every module of a kind has


@functools.cache
def rows() -> list[list[str]]:
    """The cells of every line of the glossary's tables, heads left out."""
    lines = [line for line in (ROOT / "GLOSSARY.md").read_text().splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] not in ("term", "not") and not set(row[0]) <= {"-"}]


def terms() -> dict[str, tuple[str, str]]:
    """Meaning and room of each term."""
    return {row[0]: (row[1], row[2]) for row in rows() if len(row) == 3}


def retired() -> dict[str, str]:
    """What is said instead of each word that is not used."""
    return {row[0]: row[1] for row in rows() if len(row) == 2}


@functools.cache
def names(path: Path) -> frozenset[str]:
    """Every identifier that a file defines or takes: classes, functions, arguments, variables, attributes."""
    found = set()
    for node in nodes(path):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
    return frozenset(found)


def parts(name: str) -> list[str]:
    """The words of an identifier: "RestartableComm" and "restartable_comm" are restartable and comm."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def test_a_term_stands_once_and_has_a_meaning_of_one_line():
    counted = Counter(row[0] for row in rows())
    assert [term for term, count in counted.items() if count > 1] == []
    assert all(meaning and len(meaning) < 200 for meaning, _ in terms().values())
    assert len(terms()) > 60


def test_the_terms_of_a_table_stand_in_alphabetical_order():
    tables = (ROOT / "GLOSSARY.md").read_text().split("## Words not used")[0].split("## ")[1:]
    for table in tables:
        stand = [term for term in terms() if f"\n| {term} | " in table]
        assert len(stand) > 10 and stand == sorted(stand)


def test_a_term_is_used_in_its_room():
    for term, (_, room) in terms().items():
        files = [path for path in FILES if path.relative_to(ROOT).parts[0].removesuffix(".py") == room]
        assert files, f"{term}: there is no room {room}"
        spelled = re.compile(r"[ _]?".join(map(re.escape, term.lower().split())))
        assert any(spelled.search(path.read_text().lower()) for path in files), f"{term} is not used in {room}"


def test_a_word_that_is_not_used_names_nothing():
    words = re.compile(rf"\b({'|'.join(map(re.escape, retired()))})\b")
    for path in FILES:
        for name in names(path):
            found = words.search(" ".join(parts(name)))
            assert not found, f"{path.relative_to(ROOT)}: {name}; say {retired()[found[0]]}"


def test_no_two_classes_share_a_name():
    places = {}
    for path in FILES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef) and node.name not in CONTRACTS:
                places.setdefault(node.name, []).append(path.relative_to(ROOT).as_posix())
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


PARTICIPLE = re.compile(
    r"[a-z]+(ed|en|wn)|begun|borne|bought|brought|built|caught|done|found|gone|held|kept|left|lent|lost|made|meant|paid|said"
    r"|sent|spent|taught|thought|told|understood|won|worn"
)
OF_SOLUTIONS = {"applied", "shared", "spent"}  # what students' solutions may call
NO_PARTICIPLES = {
    *(
        "between",
        "even",
        "feed",
        "flatten",
        "golden",
        "happen",
        "listen",
        "markdown",
        "need",
        "open",
        "seed",
        "shutdown",
    ),
    *("spawn", "speed", "then"),
}


def is_named_after_its_place(path: Path, function: ast.FunctionDef) -> bool:
    """True for a figure, whose name is its id in texts and links, and for the answers to the questions of a quiz."""
    figure = any(isinstance(one, ast.Call) and ast.unparse(one.func) == "figure" for one in function.decorator_list)
    return figure or (path.name == "answers.py" and path.is_relative_to(ROOT / "lessons"))


def test_no_public_function_is_named_by_a_bare_participle():
    """A verb, a noun or a predicate says what a function does or returns; `told` does not."""
    found = []
    for path in FILES:
        for place in (node for node in nodes(path) if isinstance(node, ast.Module | ast.ClassDef)):
            for function in (node for node in place.body if isinstance(node, ast.FunctionDef)):
                stays = function.name in OF_SOLUTIONS | NO_PARTICIPLES or is_named_after_its_place(path, function)
                if PARTICIPLE.fullmatch(function.name) and not stays:
                    found.append(f"{path.relative_to(ROOT)}:{function.lineno} {function.name}")
    assert found == [], "name them by a verb, a noun, or is_ and has_"
