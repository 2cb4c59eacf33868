"""Threads: every rank is a thread of this process, and the clock is real.

For methods that share one vector (Hogwild): compiled kernels do not hold the interpreter's lock, so the threads really
walk through the vector side by side, and their races are real. Whatever is Python takes turns, so methods that send
messages are better off as `cluster.real.processes`, whose links these ranks use as well.

A thread cannot be killed. When a run ends early its ranks are cut off from each other and stop where they next look at
the clock, at the end of a step at the latest; nothing of them is heard any more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from cluster.collectives import known
from cluster.comm import Cancelled
from cluster.event_log import EventLog, Outcome
from cluster.real.child import SWITCH, Teller, take_part
from cluster.real.comm import RealComm
from cluster.real.supervisor import Watch


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    collective: str = "fast",
    timeout: float = 60.0,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    stop: Any = None,
    warm_up: Callable[[], Any] | None = None,
) -> Outcome:
    """Run `program(comm)` in `size` threads and give back their results and event logs.

    Everything is as in `processes.run`, but that program may be any function, and results must still be fit to be
    pickled.
    """
    if size < 1:
        raise ValueError(f"{size} ranks cannot run; allowed is 1 or more.")
    options = {"backend": "sockets", "collective": known(collective), "timeout": timeout}
    if warm_up:
        warm_up()  # once is enough for all
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        return Watch(size, on_progress, stop).run(partial(_start, size=size, program=program, options=options))
    finally:
        sys.setswitchinterval(interval)


def _start(rank: int, size: int, program: Callable, options: dict[str, Any]) -> tuple[RankThread, Connection]:
    ours, theirs = Pipe()
    thread = RankThread(rank, size, theirs, program, options)
    thread.start()
    return thread, ours


class RankThread(Thread):
    """A rank, with as much of the manners of a process as a thread can have."""

    exitcode = None

    def __init__(self, rank: int, size: int, pipe: Connection, program: Callable, options: dict[str, Any]):
        super().__init__(name=f"rank {rank}", daemon=True)
        self._teller, self._comm, self._cut_off = Stoppable(pipe, self), None, False
        self._life = partial(take_part, rank, size, self._teller, lambda: (program, None), options)

    def run(self) -> None:
        self._life()
        if self._comm is None:  # it has failed before it began, and nobody listens for the end
            self._teller.close()

    def begin(self, comm: RealComm) -> None:
        """From now on a look at the clock may find that the rank is cut off."""
        clock, self._comm = comm.event_log.clock, comm

        def watched() -> float:
            if self._cut_off:
                raise Cancelled("the run is over")
            return clock()

        comm.event_log.clock = watched

    def kill(self) -> None:
        """Cut it off from the others."""
        self._cut_off = True
        if self._comm:
            self._comm._world.links.hang_up()

    def join(self, timeout: float | None = 1.0) -> None:
        """Wait, but not for one that computes on."""
        super().join(timeout)


class Stoppable(Teller):
    """A teller whose end of the run is the thread's, and not the process's."""

    def __init__(self, pipe: Connection, thread: RankThread):
        super().__init__(pipe, self.close)
        self._thread = thread

    def start(self, comm: RealComm) -> None:
        """From now on, report and be stopped."""
        self._thread.begin(comm)
        super().start(comm)

    def close(self) -> None:
        """The rank has nothing more to tell."""
        self._thread.kill()
        with self._turn:
            self._pipe.close()
