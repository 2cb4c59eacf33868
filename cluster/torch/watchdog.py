"""The watchdog of a run: it looks whether anything still happens, and ends a rank that lets no other one run."""

from __future__ import annotations

import threading
import time

from cluster.comm import ClusterError
from cluster.torch.pricing import Pricer
from cluster.torch.strands import BATON

real_time = time.monotonic  # that of scripts is virtual
PATIENCE = 60.0  # s of real time in which nothing happens, after which a run is given up


class Blocked(ClusterError):
    """A rank has run for too long without an operation of torch, so that no other rank can run."""


class StillRunning(BaseException):
    """Raised inside such a rank, to end it."""


def watch(done: threading.Event, stop: threading.Event, patience: float) -> None:
    """Wait until the run is `done`. If nothing happens for too long, end the rank that runs, or raise Blocked."""
    seen, since, warned = (0, 0), real_time(), False
    while not done.is_set():
        try:
            done.wait(0.05)  # not join: a join that is interrupted takes a thread that runs for one that ended
        except KeyboardInterrupt:
            stop.set()
        if seen != (now := (BATON.passes, Pricer.operations)):
            seen, since, warned = now, real_time(), False
        elif real_time() - since > patience and not warned:
            BATON.interrupt(StillRunning)
            warned, since = True, real_time()
        elif warned and real_time() - since > min(patience, 5.0):
            raise Blocked(
                f"no rank can run, since one blocks in C++:\n{BATON.describe()}Waiting outside of torch.distributed is "
                "not simulated; use its operations. This process cannot simulate again."
            )
