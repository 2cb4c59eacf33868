"""Signals: a Ctrl-C in a terminal is sent to every process that was started from there."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held_back(*numbers: int) -> Iterator[None]:
    """Hold these signals back: they come later to this thread, and never to the processes that it starts meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
