"""Replace names in modules during a run."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replace_names(place: Any, **new: Any) -> Iterator[None]:
    """Replace these attributes of `place`, and restore them afterwards. Attributes it does not have are skipped."""
    before = {name: getattr(place, name) for name in new if hasattr(place, name)}
    try:
        for name in before:
            setattr(place, name, new[name])
        yield
    finally:
        for name, value in before.items():
            setattr(place, name, value)
