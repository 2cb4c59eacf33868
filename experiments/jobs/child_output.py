"""The output pipe of a child process, in a form that a selector can wait for.

On POSIX that is the pipe itself. On Windows a selector accepts only sockets, so a thread copies the pipe into a socket.
"""

import contextlib
import os
import socket
from threading import Thread
from typing import IO

CHUNK = 1 << 16  # bytes of one read
AFTERWARDS = 5.0  # s that copying a process's last words may take
SELECTABLE = os.name != "nt"


class ChildOutput:
    """The read end of a child's output pipe, which a selector can watch on every system."""

    def __init__(self, pipe: IO[bytes]):
        self._pipe, self._copy = pipe, None
        if SELECTABLE:
            os.set_blocking(pipe.fileno(), False)
            return
        self._copy, theirs = socket.socketpair()
        self._copy.setblocking(False)
        Thread(target=_copied, args=(pipe, theirs), daemon=True).start()

    def fileno(self) -> int:
        """Return the file descriptor that a selector can watch."""
        return (self._copy or self._pipe).fileno()

    def read(self) -> bytes | None:
        """Return the bytes that arrived, b"" at the end, or None if there are none yet."""
        try:
            return os.read(self._pipe.fileno(), CHUNK) if self._copy is None else self._copy.recv(CHUNK)
        except (BlockingIOError, TimeoutError):
            return None

    def wait_for_rest(self) -> None:
        """After the process has ended, let `read` wait for output that the thread has not copied yet. On POSIX there is
        none.
        """
        if self._copy is not None:
            self._copy.settimeout(AFTERWARDS)

    def close(self) -> None:
        """Close the reader's end."""
        if self._copy is None:
            self._pipe.close()  # otherwise the thread closes it, since it may be reading
        else:
            self._copy.close()


def _copied(pipe: IO[bytes], to: socket.socket) -> None:
    """Forward everything from the pipe until the reader is gone."""
    with pipe, to, contextlib.suppress(OSError):
        while chunk := os.read(pipe.fileno(), CHUNK):
            to.sendall(chunk)
