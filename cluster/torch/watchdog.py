"""The watchdog of a run: checks that the run makes progress, and ends a rank that keeps all others from running."""

import threading
import time
from collections.abc import Callable

from cluster.comm import Cancelled, ClusterError
from cluster.strands.threads import BATON
from cluster.torch.pricing import Pricer
from cluster.torch.process import script_line

real_time = time.monotonic  # a script's time is virtual
IDLE = 0.01  # of a core: a rank that uses less has been waiting
OFTEN = 0.05  # s between two checks
AT_ONCE, AT_LAST = 2.0, 5.0  # s after Ctrl-C until a rank is ended, and until it must have ended
PATIENCE = 60.0  # s without progress, in which a rank computes or waits, after which a run is given up


class Blocked(ClusterError):
    """Raised when a rank has run for too long without a torch operation, so that no other rank can run."""


class StillRunning(BaseException):
    """Raised inside a blocked rank, to end it. `raised` is then True; it stays False while a call into C++ blocks."""

    raised = False

    def __init__(self):
        super().__init__()
        StillRunning.raised = True


class Abandoned(BaseException):
    """Raised inside a rank that catches everything. Creating it stops the thread for good, so that it cannot crash
    Python at exit.
    """

    def __init__(self):
        super().__init__()
        threading.Event().wait()


def watch(done: threading.Event, interrupted: threading.Event, patience: float, look: Callable[[], None]) -> None:
    """Wait until the run is `done`, and keep calling `look()` in this thread. Ctrl-C sets `interrupted`.

    If nothing happens for `patience` seconds (`standstill`), or the run continues after an interrupt, end the running
    rank. Raise Blocked or Cancelled if it cannot be ended. An error in `look` ends the run at once, and is then raised.
    """
    seen, since, warned, error = (0, 0), _clocks(), False, None
    stopping = False  # whether `since` is the time of the interrupt
    while not done.is_set():
        try:
            done.wait(OFTEN)  # not join: an interrupted join mistakes a running thread for an ended one
            if not error:
                look()
        except KeyboardInterrupt:
            interrupted.set()
        except BaseException as broken:
            error = broken
            interrupted.set()
        if interrupted.is_set():
            if not stopping:
                stopping, since, warned = True, _clocks(), False
        elif seen != (now := (BATON.passes, Pricer.operations)):
            seen, since, warned = now, _clocks(), False
        passed, used = (now - then for now, then in zip(_clocks(), since, strict=True))
        still = standstill(passed, used)
        if not warned and (passed > min(patience, AT_ONCE) if stopping else still > patience):
            StillRunning.raised = False
            BATON.interrupt(StillRunning)
            warned, since = True, _clocks()
        elif warned and still > min(patience, AT_LAST):
            raise _give_up(stopping)
    if error:
        raise error


def standstill(passed: float, used: float) -> float:
    """Return how long the running rank counts as stuck, in s, after `passed` s in which it used `used` s of CPU time.

    On a busy machine, a rank that computes gets only part of a core, and is slow through no fault of its own. So its
    CPU time counts. Real time counts only if it used almost no CPU time, because then it is waiting.
    """
    return used if used > IDLE * passed else passed


def _clocks() -> tuple[float, float]:
    """Return the real time, and the CPU time of all threads other than this one, in s."""
    return real_time(), time.process_time() - time.thread_time()


def _give_up(stopping: bool) -> ClusterError:
    """Abandon the running rank's thread, and return the error that tells the user so."""
    holder = BATON.holder
    line = script_line(BATON.frame())
    where = f"{f'rank {holder.state.rank}' if holder and holder.thread else 'a rank'}{f' ({line})' * bool(line)}"
    BATON.interrupt(Abandoned)
    if stopping:
        return Cancelled(f"cancelled while {where} blocks; this process cannot simulate again")
    if StillRunning.raised:
        return Blocked(
            f"{where} has run for too long without a torch operation, and catches the exception that should end it; "
            "catch Exception, not BaseException. This process cannot simulate again."
        )
    return Blocked(
        f"{where} blocks in C++, so no rank can run. Waiting outside torch.distributed is not simulated; use its "
        "operations. This process cannot simulate again."
    )
