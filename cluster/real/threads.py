"""Every rank is a thread of this process, and the clock is real.

This is for algorithms that share one vector (Hogwild): compiled kernels release the interpreter's lock, so the threads
update the vector in parallel, and their races are real. Python code takes turns, so algorithms that send messages run
better on `cluster.real.processes`, whose links these ranks use as well.

A thread cannot be killed. When a run ends early, its ranks are disconnected from each other and stop when they next
read the clock, at the end of a step at the latest; their output is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any

from cluster.collectives import check_name
from cluster.comm import Cancelled
from cluster.devices import Device
from cluster.event_log import EventLog, Outcome
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.real.child import SWITCH, Reporter, run_rank
from cluster.real.comm import RealComm
from cluster.real.supervisor import Supervisor


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    collective: str = "fast",
    network: Network | None = None,
    device: Device | None = None,
    faults: Faults = NONE,
    timeout: float = 60.0,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    on_phase: Callable[[str], None] | None = None,
    stop: Any = None,
    warm_up: Callable[[str], Any] | None = None,
) -> Outcome:
    """Run `program(comm)` in `size` threads and return their results and event logs.

    Arguments are those of `processes.run`, except that `program` may be any function. Results must be picklable.
    """
    if size < 1:
        raise ValueError(f"{size} ranks cannot run; use 1 or more.")
    if faults.crash:
        raise ValueError("crash: a thread cannot be killed without its whole process; use processes.")
    options = {"backend": "sockets", "collective": check_name(collective), "timeout": timeout}
    options |= {"network": network, "device": device, "faults": faults}
    if on_phase:
        on_phase("warming up")
    if warm_up:
        warm_up("cpu")  # once for all threads
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    try:
        return Supervisor(size, on_progress, stop).run(partial(_start, size=size, program=program, options=options))
    finally:
        sys.setswitchinterval(interval)


def _start(rank: int, size: int, program: Callable, options: dict[str, Any]) -> tuple[RankThread, Connection]:
    ours, theirs = Pipe()
    thread = RankThread(rank, size, theirs, program, options)
    thread.start()
    return thread, ours


class RankThread(Thread):
    """A rank in a thread, with the methods of a process that the supervisor uses."""

    exitcode = None

    def __init__(self, rank: int, size: int, pipe: Connection, program: Callable, options: dict[str, Any]):
        super().__init__(name=f"rank {rank}", daemon=True)
        self._reporter, self._disconnected = StoppableReporter(pipe, self), False
        self._comm: RealComm | None = None
        self._run_rank = partial(run_rank, rank, size, self._reporter, lambda: (program, None), options)

    def run(self) -> None:
        self._run_rank()
        if self._comm is None:  # it failed before it began, so no thread waits for the end of the run
            self._reporter.close()

    def begin(self, comm: RealComm) -> None:
        """Make the rank's clock raise Cancelled once the rank is disconnected."""
        clock, self._comm = comm.event_log.clock, comm

        def watched() -> float:
            if self._disconnected:
                raise Cancelled("the run is over")
            return clock()

        comm.event_log.clock = watched

    def kill(self) -> None:
        """Disconnect this rank from the others."""
        self._disconnected = True
        if self._comm:
            self._comm._state.links.abort()
            self._comm._state.threads.close()

    def join(self, timeout: float | None = 1.0) -> None:
        """Wait at most `timeout` seconds for the thread to end, since a disconnected rank may continue to compute."""
        super().join(timeout)


class StoppableReporter(Reporter):
    """A reporter that ends its thread, not the process, at the end of the run."""

    def __init__(self, pipe: Connection, thread: RankThread):
        super().__init__(pipe, self.close)
        self._thread = thread

    def start(self, comm: RealComm) -> None:
        """Start reporting, and make the thread stoppable."""
        self._thread.begin(comm)
        super().start(comm)

    def close(self) -> None:
        """Disconnect the rank and close the pipe to the supervisor."""
        self._thread.kill()
        with self._turn:
            self._pipe.close()
