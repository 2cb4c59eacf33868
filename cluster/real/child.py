"""A rank that was started by `cluster.real.processes`: what it runs, and what it tells its parent.

A thread of its own sends what the rank has noted, and how it stands, a few times a second; the same thread hears when
the run is over, or when there is no parent any more.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any

from cluster.real.comm import RealComm
from cluster.real.failure import Failure
from cluster.real.rank import enter, leave, state
from kernels import metered, to_numpy

PERIOD = 0.2  # s between two reports
SWITCH = 2e-4  # s a thread that reads messages waits at most for the interpreter; Python's own choice is 5e-3


def main(rank: int, size: int, pipe: Connection, program: bytes, options: dict[str, Any]) -> None:
    """The whole life of a rank; `options` are those of `cluster.real.rank.enter`."""
    end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to hear
    if hasattr(signal, "pthread_sigmask"):  # the fork server holds these back, see `cluster.real.processes.prepare`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    sys.setswitchinterval(SWITCH)
    take_part(rank, size, Teller(pipe, end), partial(pickle.loads, program), options)
    end()


def take_part(rank: int, size: int, teller: Teller, load: Callable[[], tuple], options: dict[str, Any]) -> None:
    """Do (work, warm_up), which `load` gives, as one of the ranks, and tell how that went."""
    try:
        work, warm_up = load()
        if warm_up:
            warm_up()
        comm, notes = enter(rank, size, teller.exchange, **options)
        if rank == 0 and notes:
            teller.tell("notes", notes)
        teller.start(comm)
        with metered(comm.event_log):
            result = work(comm)
        teller.tell("result", to_numpy(result) if hasattr(result, "detach") else result)
        teller.finished = True
        left = leave(comm)
        teller.report()
        teller.tell("closed", left)
    except (Exception, SystemExit) as error:  # a thread that leaves by sys.exit would otherwise not be missed
        teller.fail(error, rank)


class Teller:
    """The rank's end of the pipe to its parent, which calls `end` when the run is over, or the parent gone."""

    def __init__(self, pipe: Connection, end: Callable[[], None]):
        self._pipe, self._turn, self._end = pipe, Lock(), end
        self._comm: RealComm | None = None
        self.finished = False

    def exchange(self, x: Any) -> list:
        """Everybody's x, through the parent."""
        self.tell("offer", x)
        return self._pipe.recv()

    def tell(self, kind: str, content: Any) -> None:
        """Send one message; what cannot be pickled raises here."""
        with self._turn:
            self._pipe.send((kind, content))

    def start(self, comm: RealComm) -> None:
        """From now on, report."""
        self._comm = comm
        Thread(target=self._go_on, daemon=True).start()

    def report(self) -> None:
        """Send what is new, and how this rank stands."""
        if self._comm is None:
            return
        with self._turn:
            now = state(self._comm, self.finished)
            at = time.monotonic()
            seconds = at - self._comm.event_log.zero
            self._pipe.send(("news", (self._comm.event_log.take(), at, seconds, now)))

    def fail(self, error: BaseException, rank: int) -> None:
        """The last thing this rank says."""
        failure = Failure.of(error, rank, self._comm.event_log.step if self._comm else -1)
        with contextlib.suppress(OSError):
            self.report()
            self.tell("failed", failure)

    def _go_on(self) -> None:
        try:
            while not self._pipe.poll(PERIOD):
                self.report()
            self._pipe.recv()  # the run is over
            self.report()
        except (EOFError, OSError):
            pass  # there is no parent any more
        self._end()


def end() -> None:
    """Leave without waiting for threads that wait for other ranks."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def end_with_parent() -> None:
    """Have the kernel end this process when its parent does, whatever it is doing then."""
    if sys.platform != "linux":
        return  # the thread that reports will notice
    import fcntl

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the fork server
    parent = multiprocessing.parent_process().sentinel  # a pipe that the parent holds: SIGIO when it closes
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(parent, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(parent, fcntl.F_SETFL, fcntl.fcntl(parent, fcntl.F_GETFL) | os.O_ASYNC)
    if multiprocessing.connection.wait([parent], 0):
        os._exit(1)  # it was gone before
