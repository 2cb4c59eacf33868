"""A rank started by `cluster.real.processes` or `threads`: run its program and report to the parent.

A reporter thread sends the new rows of the event log and the rank's progress a few times a second. The same thread
notices when the run is over or the parent has ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
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

from cluster.real import gpus
from cluster.real.comm import RealComm
from cluster.real.failure import Failure
from cluster.real.orphan import end_when_closed
from cluster.real.rank import crash_at, enter, leave, meter, status
from cluster.real.restart import enter_again
from cluster.real.signals import TERMINAL_CLOSED
from kernels import compiling, meter_kernels, to_numpy

PERIOD = 0.2  # s between two reports
SWITCH = 2e-4  # s: the longest time a reader thread waits for the interpreter; Python's default is 5e-3


def main(rank: int, size: int, pipe: Connection, program: bytes, options: dict[str, Any]) -> None:
    """Run a rank as this process, then end the process. `options` are those of `cluster.real.rank.enter`."""
    end_with_parent()
    for number in filter(None, (signal.SIGINT, TERMINAL_CLOSED)):
        signal.signal(number, signal.SIG_IGN)  # the parent handles Ctrl-C and a closed terminal
    if hasattr(signal, "pthread_sigmask"):  # the fork server blocks these, see `cluster.real.processes.prepare`
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
    sys.setswitchinterval(SWITCH)
    sleep_precisely()
    run_rank(rank, size, Reporter(pipe, end), partial(pickle.loads, program), options)
    end()


def run_rank(rank: int, size: int, reporter: Reporter, load: Callable[[], tuple], options: dict[str, Any]) -> None:
    """Run the program of one rank and report its result or failure. `load()` returns (program, warm_up or None)."""
    heard = contextlib.ExitStack()
    try:
        heard.enter_context(compiling.telling(reporter.compiling))
        work, warm_up = load()
        if warm_up:
            warm_up(gpus.place_of(options["backend"], rank))
        comm, allotment = (enter_again if "past" in options else enter)(rank, size, reporter.exchange, **options)
        if "past" in options:
            reporter.tell("returned", comm.event_log.mark)
        if rank == 0 and allotment:
            reporter.tell("allotment", allotment)
        reporter.start(comm)
        before = compiling.seconds()
        at = options["faults"].crash.get(rank, math.inf)
        crash_at(at, comm, lambda: reporter.finished, reporter.report)
        with meter_kernels(meter(comm)):
            result = work(comm)
        if spent := compiling.seconds() - before:
            reporter.tell("compiled", spent)
        reporter.tell("result", pickle.dumps(to_numpy(result) if hasattr(result, "detach") else result))
        reporter.finished = True
        left = leave(comm)
        reporter.report()
        reporter.tell("closed", left)
    except (Exception, SystemExit) as error:  # otherwise nobody would notice a thread that calls sys.exit
        reporter.fail(error, rank)
    finally:
        heard.close()


class Reporter:
    """A sender of a rank's reports to its parent, over a pipe. It calls `end` when the run is over or the parent has
    ended.
    """

    def __init__(self, pipe: Connection, end: Callable[[], None]):
        self._pipe, self._turn, self._end = pipe, Lock(), end
        self._comm: RealComm | None = None
        self.finished = False

    def exchange(self, x: Any) -> list:
        """Send `x` to the parent, and return the x of every rank, which the parent has collected."""
        self.tell("offer", x)
        return self._pipe.recv()

    def tell(self, kind: str, content: Any) -> None:
        """Send one message to the parent. Raise an error if `content` cannot be pickled."""
        with self._turn:
            self._pipe.send((kind, content))

    def compiling(self) -> None:
        """Report that the rank is waiting for a compiler, unless the parent is gone."""
        with contextlib.suppress(OSError):
            self.tell("compiling", None)

    def start(self, comm: RealComm) -> None:
        """Start the thread that reports at regular intervals."""
        self._comm = comm
        Thread(target=self._go_on, daemon=True).start()

    def report(self) -> None:
        """Send the new rows of the event log, and the state of this rank."""
        if self._comm is None:
            return
        with self._turn:
            now = status(self._comm, self.finished)
            at = time.monotonic()
            seconds = at - self._comm.event_log.zero
            self._pipe.send(("news", (self._comm.event_log.take(), at, seconds, now)))

    def fail(self, error: BaseException, rank: int) -> None:
        """Report that `error` ends this rank."""
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
            pass  # the parent has ended
        self._end()


def end() -> None:
    """End the process without waiting for threads that wait for other ranks."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads it any more
            stream.flush()
    os._exit(0)


def sleep_precisely() -> None:
    """Make this thread and those it starts wake up on time, instead of up to 50 us late."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(29, 1000)  # PR_SET_TIMERSLACK, ns


def end_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends, whatever it is doing at that time."""
    if sys.platform != "linux":
        return  # there the reporter thread notices
    from multiprocessing import forkserver

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: the fork server
    # the fork server ends when nobody holds this pipe any more; a stopped rank would hold it, and so itself, forever
    server: Any = forkserver._forkserver
    alive, server._forkserver_alive_fd = server._forkserver_alive_fd, None
    if alive is not None:
        os.close(alive)
    if parent := multiprocessing.parent_process():
        end_when_closed(parent.sentinel)
