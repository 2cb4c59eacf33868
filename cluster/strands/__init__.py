"""Strands, which run the ranks of the simulated cluster. Like a coroutine, a strand is suspended while its rank waits.

A strand is a greenlet, or has the part of its interface that `Strand` below describes:

    greenlet      switches stacks in C, in about a microsecond; used wherever it can be imported
    browser.py    in a browser, where WebAssembly can suspend a stack until a promise resolves
    threads.py    threads that pass on a baton: for ranks that run torch, and where there is no greenlet
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Protocol


class Strand(Protocol):
    """A strand that calls `main()` when it is first switched to. When that returns, its parent continues."""

    GreenletExit: type[BaseException]  # ends a strand in which it is raised, and is not passed on to the parent

    def __init__(self, main: Callable[[], None], parent: Strand): ...

    @staticmethod
    def getcurrent() -> Strand:
        """Return the running strand."""

    def switch(self) -> Any:
        """Suspend the running strand, continue this one, and return when some strand switches back."""

    def throw(self, error: type[BaseException] | BaseException) -> Any:
        """Switch to this strand and raise `error` in it; return as `switch` does. A strand that has not started never
        starts.
        """


def choose() -> Any:
    """Return the fastest type of strand that this Python has."""
    try:
        from greenlet import greenlet
    except ImportError:
        if sys.platform == "emscripten":
            from cluster.strands.browser import BrowserStrand

            return BrowserStrand
        from cluster.strands.threads import ThreadStrand

        return ThreadStrand
    return greenlet


FASTEST = choose()
