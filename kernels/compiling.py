"""Compiling: count the time that Numba spends compiling kernels which it did not find on disk, and notify listeners.

A kernel is compiled at its first call and then cached on disk, so this happens in the first runs after an installation,
and again in the first run that uses another kernel.
The time does not belong to the run. `kernels.compiled` reports each compilation; this module does not load Numba.
"""

import contextlib
import time
from collections.abc import Callable, Iterator

WORDS = "compiling kernels, once on this machine; this can take a minute"

_depth, _began, _spent = 0, 0.0, 0.0  # nested: the kernels that a kernel calls are compiled during its own compilation
_heard: list[Callable[[], None]] = []


def begin() -> None:
    """Record that a compilation begins, and notify the listeners."""
    global _depth, _began
    _depth += 1
    if _depth == 1:
        _began = time.perf_counter()
        for heard in [*_heard]:
            heard()


def end() -> None:
    """Record that a compilation has ended."""
    global _depth, _spent
    _depth -= 1
    if not _depth:
        _spent += time.perf_counter() - _began


def seconds() -> float:
    """Return the time that this process has spent compiling so far, in s."""
    return _spent + (time.perf_counter() - _began if _depth else 0.0)


@contextlib.contextmanager
def telling(heard: Callable[[], None]) -> Iterator[None]:
    """Inside this context, call `heard()` whenever a compilation begins, in the thread that waits for it."""
    _heard.append(heard)
    try:
        yield
    finally:
        _heard.remove(heard)
