"""Where Lockstep lies: a clone with its sources, or a package in an environment; what follows from it.

A package writes nothing beside its modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CLONE = (ROOT / "pyproject.toml").is_file()
DOCUMENTS = ROOT if CLONE else ROOT / "lessons" / "documents"  # as pyproject.toml puts them into the wheel


def document(name: str) -> Path:
    """Return the path of a document by its name in a clone: "GLOSSARY.md", "docs/bibliography.md"."""
    return DOCUMENTS / name


def kept(variable: str, name: str) -> Path:
    """Return the folder `name` of what is kept: $variable, or beside the sources, or, of a package, the user's own."""
    if given := os.environ.get(variable):
        return Path(given)
    if CLONE:
        return ROOT / name
    from platformdirs import user_data_path

    return user_data_path("lockstep", appauthor=False) / name


def home() -> Path:
    """Return the folder of runs and measurements: $LOCKSTEP_RUNS, or `runs` in the clone or the user's data."""
    return kept("LOCKSTEP_RUNS", "runs")


@contextlib.contextmanager
def required() -> Iterator[None]:
    """End the program with one sentence, code 2, where a module is imported that is not installed for this Python."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if not name or (ROOT / name).exists() or (ROOT / f"{name}.py").exists():
            raise  # one of ours
        again = (
            "Run python3 start.py install once, then .venv/bin/python instead" if CLONE else "Install Lockstep again"
        )
        print(f"{name} is not installed for {sys.executable}. {again}; README.md tells other ways.", file=sys.stderr)
        sys.exit(2)


def for_authors() -> None:
    """Check that chapters can be written here: ValueError in a package, whose files are not its user's to change."""
    if not CLONE:
        raise ValueError(
            "chapters are written and recorded in a clone, and this is an installed package; clone the repository, and "
            "use lockstep book there."
        )
