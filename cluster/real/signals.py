"""Signals that end a run: noted and looked at, since an exception that may be raised anywhere would do harm.

Raised while a process is being started, KeyboardInterrupt leaves behind a process that nothing knows of and may end
the fork server; raised in a destructor, it is dropped by Python and the run goes on.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_unheeded = False  # whether the main thread does what does not look for signals
TERMINAL_CLOSED = getattr(signal, "SIGHUP", None)  # None on Windows


def stopping() -> list[int]:
    """Return the signals that end a run: Ctrl-C, SIGTERM, and a closed terminal, unless `nohup` ignores that."""
    closed = [TERMINAL_CLOSED] if TERMINAL_CLOSED and signal.getsignal(TERMINAL_CLOSED) is not signal.SIG_IGN else []
    return [signal.SIGINT, signal.SIGTERM, *closed]


@contextmanager
def noted(*numbers: int) -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether one of these signals has come; every later one raises KeyboardInterrupt.

    A closed terminal says so twice, by the kernel and by the shell, and nobody is there who would be impatient.
    Python handles signals in the main thread: in other threads nothing is changed, and the answer stays False.
    """
    count = 0  # not an Event: its lock is held while it is set, and a second signal then waits for it forever

    def note(number: int, frame: Any) -> None:
        nonlocal count
        count += 1
        if _unheeded or (count > 1 and number != TERMINAL_CLOSED):
            raise KeyboardInterrupt

    able = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, note) for number in numbers if able}
    try:
        yield lambda: count > 0
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def at_once() -> Iterator[None]:
    """Have the first signal that `noted` notes raise KeyboardInterrupt in here, where nobody looks for it.

    Building a workload may take long, or forever if a file of the user's own loops, and there is nothing to keep.
    """
    global _unheeded
    before, _unheeded = _unheeded, threading.current_thread() is threading.main_thread()
    try:
        yield
    finally:
        _unheeded = before


def interrupting() -> list[signal.Signals]:
    """Return SIGINT if it raises KeyboardInterrupt here, as it does unless it is ignored or handled by the caller."""
    return [signal.SIGINT] if signal.getsignal(signal.SIGINT) is signal.default_int_handler else []


@contextmanager
def raising() -> Iterator[None]:
    """Have Ctrl-C raise KeyboardInterrupt in here, where there may be something to tidy up, though it ends the process.

    It does so while a command line loads: no traceback out of an import.
    """
    ends = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    if ends:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if ends:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def held_back(*numbers: int) -> Iterator[None]:
    """Hold these signals back: they come later to this thread, and never to the processes that it starts meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
