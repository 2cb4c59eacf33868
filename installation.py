"""Find out whether Lockstep runs from a clone or from an installed package, and where its folders therefore are.

A package writes nothing next to its modules.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent
CLONE = (ROOT / "pyproject.toml").is_file()
DOCUMENTS = ROOT if CLONE else ROOT / "lessons" / "documents"  # where pyproject.toml puts them in the wheel


def document(name: str) -> Path:
    """Return the path of a document. Its name is that in a clone, such as "GLOSSARY.md" or "docs/bibliography.md"."""
    return DOCUMENTS / name


def data_folder(variable: str, name: str) -> Path:
    """Return the folder for the data called `name`.

    The environment variable `variable` takes precedence if it is set. Otherwise the folder is in the clone or, for an
    installed package, in the user's data folder.
    """
    if given := os.environ.get(variable):
        return Path(given)
    if CLONE:
        return ROOT / name
    from platformdirs import user_data_path

    return user_data_path("lockstep", appauthor=False) / name


def home() -> Path:
    """Return the folder of runs and measurements: $LOCKSTEP_RUNS if it is set, otherwise `runs` in the clone or in the
    user's data folder.
    """
    return data_folder("LOCKSTEP_RUNS", "runs")


@contextlib.contextmanager
def exit_if_missing() -> Iterator[None]:
    """Exit with a one-sentence message and code 2 if the block imports a package that this Python does not have."""
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if not name or (ROOT / name).exists() or (ROOT / f"{name}.py").exists():
            raise  # a module of ours is missing, which is a bug
        again = (
            "Run python3 start.py install once, then .venv/bin/python instead" if CLONE else "Install Lockstep again"
        )
        print(f"{name} is not installed for {sys.executable}. {again}; see also docs/install.md.", file=sys.stderr)
        sys.exit(2)


def for_authors() -> None:
    """Raise ValueError if Lockstep is installed as a package, since users should not change its chapters."""
    if not CLONE:
        raise ValueError(
            "chapters can only be written and recorded in a clone, but this is an installed package; clone the "
            "repository and use lockstep book there."
        )
