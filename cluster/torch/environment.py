"""What a rank gets from its operating system: environment variables, time, standard output, signals, exit."""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from cluster.torch.process import current, is_library, script_line, this
from cluster.torch.replaced import replace_names
from tracing import IDLE


class Exited(BaseException):
    """Raised inside a rank that calls os._exit. Not an Exception, so that the script does not catch it."""

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


class Environment(os._Environ):
    """os.environ, overlaid with each rank's own variables."""

    def __getitem__(self, key: str) -> str:
        mine = current()
        return mine.environment[key] if mine and key in mine.environment else super().__getitem__(key)

    def __setitem__(self, key: str, value: str) -> None:
        mine = current()
        if mine:
            mine.environment[key] = str(value)
        else:
            super().__setitem__(key, value)

    def __contains__(self, key: object) -> bool:
        mine = current()
        return bool(mine and key in mine.environment) or super().__contains__(key)

    def __delitem__(self, key: str) -> None:
        mine = current()
        if mine and key in mine.environment:
            del mine.environment[key]
        else:
            super().__delitem__(key)

    def __iter__(self) -> Iterator[str]:
        mine = current()
        yield from dict.fromkeys([*super().__iter__(), *(mine.environment if mine else ())])


class Lines:
    """A text stream that passes each rank's lines to the run, and leaves other threads' output unchanged."""

    def __init__(self, name: str):
        self._name, self.stream = name, getattr(sys, name)

    def write(self, text: str) -> int:
        mine = current()
        if not mine:
            return self.stream.write(text)
        *lines, mine.unfinished[self._name] = (mine.unfinished[self._name] + text).split("\n")
        for line in lines:
            mine.shared.on_line(mine.rank.number, line)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        """True for a terminal, except inside a rank, so that ranks print no progress bars."""
        return not current() and self.stream.isatty()

    def __getattr__(self, name: str) -> Any:
        if name == "stream":  # a copy that is being made has none yet; looking it up here would never end
            raise AttributeError(name)
        return getattr(self.stream, name)


LINES = {name: Lines(name) for name in ("stdout", "stderr")}
"""Never freed: print() only borrows sys.stdout, and would write to freed memory if a run ended in another thread."""


def finish_lines() -> None:
    """Pass on what this rank has printed after its last newline."""
    mine = this()
    for name, text in mine.unfinished.items():
        if text:
            mine.shared.on_line(mine.rank.number, text)
            mine.unfinished[name] = ""


def _clock(real: Callable[[], Any], unit: float = 0.0) -> Callable[[], Any]:
    """Return a clock that shows a rank its virtual time. Outside a rank, the clock calls `real`.

    The virtual time is in s or, given a `unit` in s, an integer number of units.
    """

    def now() -> Any:
        mine = current()
        if not mine:
            return real()
        mine.pricer.charge()
        if mine.pricer.runs_ahead and not is_library(sys._getframe(1).f_code):
            # libraries read it, too, some only in the first run of a process
            mine.pricer.join()
        return int(mine.rank.now / unit) if unit else mine.rank.now

    return now


def _sleep(seconds: float, real: Callable[[float], None] = time.sleep) -> None:
    mine = current()
    if not mine:
        real(seconds)
        return
    rank, pricer = mine.rank, mine.pricer
    pricer.host = (pricer.host if pricer.runs_ahead else rank.now) + max(0.0, float(seconds))
    start, rank.now = rank.now, max(rank.now, pricer.host)
    rank.span(IDLE, start, rank.now, "sleep")
    if rank.interruptible:
        rank.interrupt()


def _handle(number: int, action: Any, real: Callable = signal.signal) -> Any:
    """Install a signal handler, and return the previous one.

    Inside a rank, install nothing, since Python allows this only in the main thread.
    """
    return signal.getsignal(number) if current() else real(number, action)


def _exit(code: int, real: Callable = os._exit) -> None:
    if not current():
        real(code)
    this().line = script_line()
    raise Exited(code)


@contextlib.contextmanager
def own_environment() -> Iterator[None]:
    """Give each rank its own variables, clock and output during a run."""
    clocks = {name: _clock(getattr(time, name)) for name in ("time", "perf_counter", "monotonic")}
    clocks |= {f"{name}_ns": _clock(getattr(time, f"{name}_ns"), 1e-9) for name in clocks}
    kind = os.environ.__class__
    for name, lines in LINES.items():
        lines.stream = getattr(sys, name)
    with (
        replace_names(time, sleep=_sleep, **clocks),
        replace_names(signal, signal=_handle),
        replace_names(os, _exit=_exit),
        replace_names(sys, **LINES, excepthook=sys.excepthook),
    ):
        os.environ.__class__ = Environment  # keeps the variables, and earlier `from os import environ`
        try:
            yield
        finally:
            os.environ.__class__ = kind
