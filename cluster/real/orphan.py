"""Make a process end with its parent, whatever it is doing at that time.

Python's fork server does not notice the end of its parent until all modules are loaded. That takes seconds on a busy
machine, so the fork server imports this module first, which asks the kernel to end it at once.
"""

import os
import select
import signal
import sys
from types import FrameType


def end_when_closed(pipe: int) -> None:
    """Ask the kernel (Linux) to end this process when the other end of `pipe`, which is never written to, is closed."""
    import fcntl

    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(pipe, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(pipe, fcntl.F_SETFL, fcntl.fcntl(pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([pipe], [], [], 0)[0]:
        os._exit(1)  # it was closed already


def fork_servers_pipe() -> int | None:
    """Return the pipe that the parent of this fork server holds, or None if this process is not a fork server.

    A process that the fork server has forked is not one: it has closed that pipe. There, the innermost frame of the
    fork server's code is not `main`.
    """
    frame: FrameType | None = sys._getframe()
    while frame:
        if frame.f_globals.get("__name__") == "multiprocessing.forkserver":
            return frame.f_locals.get("alive_r") if frame.f_code.co_name == "main" else None
        frame = frame.f_back
    return None


if sys.platform == "linux" and (_pipe := fork_servers_pipe()) is not None:
    end_when_closed(_pipe)
