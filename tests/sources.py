"""The sources of the house, parsed once for all tests that read them."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("kernels", "workloads", "cluster", "algorithms", "theory", "experiments", "lessons", "app")
MODULES = ("installation", "knobs", "lockstep", "tracing")
FILES = [
    *sorted(p for room in ROOMS for p in (ROOT / room).rglob("*.py")),
    *(ROOT / f"{module}.py" for module in MODULES),
]


@functools.cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes of a file's syntax tree."""
    return list(ast.walk(tree(path)))
