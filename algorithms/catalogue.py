"""The catalogue: every algorithm, in teaching order, and every compression. Each has its own file.

An entry in catalogue.toml, with its title and its costs, is the only registration; a module is imported at its first
use.
"""

import difflib
import importlib
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from algorithms.algorithm import Algorithm
from algorithms.codec import Compression

DECLARED: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
CATALOGUE: dict[str, str] = {name: entry["title"] for name, entry in DECLARED.items() if "." in name}
"""Title of each algorithm, by family and name."""
FAMILIES: dict[str, str] = {name: entry["title"] for name, entry in DECLARED["families"].items()}
"""Title of each family, in the catalogue's order; compression, which combines with several families, comes last."""
FAMILY_IDEAS: dict[str, str] = {name: entry["idea"] for name, entry in DECLARED["families"].items()}
"""What the algorithms of a family have in common, in a sentence."""
COMPRESSIONS: dict[str, str] = DECLARED["compressions"]
"""Title of each compression, by name."""


@cache
def names() -> tuple[str, ...]:
    """Return the short names, in teaching order."""
    return tuple(entry.split(".")[1] for entry in CATALOGUE)


def family(name: str) -> str:
    """Return the family of an algorithm, by its short name."""
    return next(entry for entry in CATALOGUE if entry.endswith("." + name)).split(".")[0]


def find(name: str) -> Algorithm:
    """Return the declaration of an algorithm, by short or full name. Raise ValueError if it is unknown."""
    return module(name).ALGORITHM


@cache
def module(name: str) -> ModuleType:
    """Return the module of an algorithm named "easgd" or "averaging.easgd". Raise ValueError if it is unknown."""
    entry = next((entry for entry in CATALOGUE if name in (entry, entry.split(".")[1])), None)
    if entry is None:
        if name.casefold() in COMPRESSIONS:
            code = name.casefold()
            raise ValueError(
                f"{code} is a compression, which is used with an algorithm: sync_sgd --compression {code}."
            )
        titles = dict(zip(names(), CATALOGUE.values(), strict=True))
        raise _unknown("algorithm", name, titles, f"there are {len(CATALOGUE)}, such as sync_sgd, easgd and gpipe.")
    return importlib.import_module(f"algorithms.{entry}")


def compression(name: str) -> Compression:
    """Return the declaration of a compression. Raise ValueError if it is unknown."""
    return compression_module(name).COMPRESSION


def compression_module(name: str) -> ModuleType:
    """Return the module of a compression. Raise ValueError if it is unknown."""
    if name not in COMPRESSIONS:
        raise _unknown("compression", name, COMPRESSIONS, f"there are none, {', '.join(COMPRESSIONS)}.")
    return importlib.import_module(f"algorithms.compression.{name}")


def idea(module: ModuleType) -> str:
    """Return the first line of the module's docstring, its one-line description."""
    return (module.__doc__ or "").strip().split("\n")[0]


def _unknown(kind: str, name: str, titles: Mapping[str, str], otherwise: str) -> ValueError:
    meant = _meant(name.casefold(), titles)
    return ValueError(f"there is no {kind} {name[:60]!r}; {f'did you mean {meant}?' if meant else otherwise}")


def _meant(words: str, titles: Mapping[str, str]) -> str:
    """Return the known name closest to `words`, such as easgd for EASGD, by name or title; "" if none is close."""
    spelled = {name.casefold(): name for name in titles}
    called = {title.casefold(): name for name, title in titles.items()}
    parts: dict[str, str] = {}
    for title, name in called.items():
        for part in re.findall(r"[\w-]+", title):
            parts.setdefault(part, name)
    for known in (spelled, called, parts):
        if words in known:
            return known[words]
    close = [(known, difflib.get_close_matches(words, known, n=1)) for known in (spelled, called)]
    return next((known[found[0]] for known, found in close if found), "")
