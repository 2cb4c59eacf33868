"""Signals that end a run. They are recorded and polled: an exception that can be raised anywhere would do harm.

If KeyboardInterrupt is raised while a process is being started, it leaves an unknown process behind and may end the
fork server. If it is raised in a destructor, Python drops it and the run continues.
"""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_unheeded = False  # whether the main thread runs code that does not poll for signals
TERMINAL_CLOSED = getattr(signal, "SIGHUP", None)  # None on Windows


def stop_signals() -> list[int]:
    """Return the signals that end a run: SIGINT, SIGTERM and, except under `nohup`, SIGHUP (a closed terminal)."""
    closed = [TERMINAL_CLOSED] if TERMINAL_CLOSED and signal.getsignal(TERMINAL_CLOSED) is not signal.SIG_IGN else []
    return [signal.SIGINT, signal.SIGTERM, *closed]


@contextmanager
def catch_signals(*numbers: int) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True once one of these signals has arrived.

    A second signal raises KeyboardInterrupt, except SIGHUP: a closed terminal sends it twice, from the kernel and from
    the shell, and no user is waiting. Outside the main thread, where Python cannot handle signals, nothing changes and
    the function returns False.
    """
    count = 0  # not an Event, whose lock is held while it is set: a second signal would wait for it forever

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
def interrupt_at_once() -> Iterator[None]:
    """In this block, raise KeyboardInterrupt at the first signal that `catch_signals` catches; no polling is needed.

    Building a workload may take a long time, or forever if a user's own file loops, and there is no result to keep.
    """
    global _unheeded
    before, _unheeded = _unheeded, threading.current_thread() is threading.main_thread()
    try:
        yield
    finally:
        _unheeded = before


def interrupt_signals() -> list[signal.Signals]:
    """Return [SIGINT] if it raises KeyboardInterrupt here, or [] if it is ignored or the caller handles it."""
    return [signal.SIGINT] if signal.getsignal(signal.SIGINT) is signal.default_int_handler else []


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Make Ctrl-C raise KeyboardInterrupt in this block, so that the block can tidy up.

    While a command line loads, Ctrl-C ends the process at once instead, to avoid a traceback from an import.
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
def defer_signals(*numbers: int) -> Iterator[None]:
    """Defer these signals: this thread receives them after the block, and processes started in the block never do."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
