"""Replace names of modules for the time of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replace_names(place: Any, **new: Any) -> Iterator[None]:
    """Let `place` have these attributes instead of its own. Those that it does not have are left out."""
    before = {name: getattr(place, name) for name in new if hasattr(place, name)}
    try:
        for name in before:
            setattr(place, name, new[name])
        yield
    finally:
        for name, value in before.items():
            setattr(place, name, value)
