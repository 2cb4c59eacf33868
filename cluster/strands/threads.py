"""Strands that are OS threads. Only the one that holds the baton runs.

torch keeps autograd's graph, the grad mode, dispatch modes and process groups in C++ thread-locals. A rank that runs
torch therefore needs its own thread, whereas other ranks of the simulated cluster are greenlets.

    hub  --switch-->  rank 0  --switch-->  rank 3  ...     an arrow opens one gate and closes the caller's own

A process has one baton, so it makes one run at a time. Per-process state, such as the random numbers, is swapped when
the baton passes on (`cluster/torch/process_state.py`).
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from cluster.strands.strand_exit import StrandExit


class Baton:
    """A token that only the running strand holds. `passes` counts how often it changes hands, a sign of progress."""

    def __init__(self):
        self.holder: ThreadStrand | None = None
        self.passes = 0

    def frame(self) -> FrameType | None:
        """Return the innermost frame of the running strand, or None for the hub."""
        thread = self.holder and self.holder.thread
        return sys._current_frames().get(thread.ident or 0) if thread else None

    def interrupt(self, error: type[BaseException]) -> None:
        """Raise `error` in the running strand, at its next line of Python. A call into C++ is not interrupted."""
        thread = self.holder and self.holder.thread
        if thread:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(error))


BATON = Baton()


class ThreadStrand:
    """A thread that runs while it holds the baton. Implements `Strand` of `cluster.strands`."""

    GreenletExit = StrandExit

    def __init__(self, main: Callable[[], None] | None = None, parent: ThreadStrand | None = None):
        self._main, self._parent = main, parent
        self._gate = threading.Lock()  # closed, until it gets the baton
        self._gate.acquire()
        self._error: type[BaseException] | BaseException | None = None  # raised when it gets the baton
        self.thread: threading.Thread | None = None
        self.dead = False
        self.state: Any = None  # a ProcessState, swapped when the baton passes on

    @staticmethod
    def getcurrent() -> ThreadStrand:
        """Return the running strand. The first caller of a run becomes the hub."""
        if BATON.holder is None:
            BATON.holder = ThreadStrand()
        return BATON.holder

    def switch(self) -> None:
        """Pass the baton to this strand or, if it is dead, to its nearest living ancestor, and wait for its return."""
        me, other = BATON.holder, self
        while other.dead and other._parent:
            other = other._parent
        if other is me:
            return
        assert me
        me._give(other)
        me._gate.acquire()
        if me._error is not None:
            error, me._error = me._error, None
            raise error

    def throw(self, error: type[BaseException] | BaseException = StrandExit) -> None:
        """Give the baton to this strand and raise `error` in it. A strand that has not started never starts."""
        if self._main and not self.thread:
            self.dead = True  # it has not begun
        if not self.dead:
            self._error = error
            self.switch()

    def _run(self) -> None:
        try:
            assert self._main
            self._main()
        except StrandExit:
            pass
        except BaseException as error:
            assert self._parent
            self._parent._error = error
        self.dead = True
        assert self._parent
        self._give(self._parent)

    def _give(self, other: ThreadStrand) -> None:
        BATON.passes += 1
        if self.state:
            self.state.put_away()
        if other.state:
            other.state.put_back()
        BATON.holder = other
        if other._main and not other.thread:
            other.thread = threading.Thread(target=other._run, name="rank", daemon=True)
            other.thread.start()
        else:
            other._gate.release()
