"""Compiling: what Numba compiles because it finds nothing on disk, how long that takes, and who is told.

A kernel is compiled when it is first called and kept on disk, so this happens in the first runs after an installation.
The time is the compiler's and not the run's. `kernels.compiled` tells of each compilation; this module loads no Numba.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

WORDS = "compiling kernels, once"

_depth, _began, _spent = 0, 0.0, 0.0  # a kernel that calls others has them compiled within its own compilation
_heard: list[Callable[[], None]] = []


def begin() -> None:
    """Count a compilation that begins, and tell those who want to hear."""
    global _depth, _began
    _depth += 1
    if _depth == 1:
        _began = time.perf_counter()
        for heard in [*_heard]:
            heard()


def end() -> None:
    """Count a compilation that has ended."""
    global _depth, _spent
    _depth -= 1
    if not _depth:
        _spent += time.perf_counter() - _began


def seconds() -> float:
    """Return how long this process has compiled so far, s."""
    return _spent + (time.perf_counter() - _began if _depth else 0.0)


@contextlib.contextmanager
def telling(heard: Callable[[], None]) -> Iterator[None]:
    """Call `heard()` in here whenever a compilation begins, in the thread that waits for it."""
    _heard.append(heard)
    try:
        yield
    finally:
        _heard.remove(heard)
