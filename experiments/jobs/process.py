"""A job's process, seen from its parent.

It is started in its own process group, so that it can be ended together with its descendants; its pipes and its end are
events of a selector. Only the thread that owns it may use it, except for `ask`.
"""

import contextlib
import json
import os
import selectors
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from experiments.jobs.child_output import ChildOutput
from experiments.runs.summary import ROOT

MAX_LINE = 4_000_000  # bytes of one line it may write
TAIL = 8_000  # bytes of stderr that are kept


class Child:
    """A process of `command` that waits for the spec that `begin` sends. Raise OSError if it cannot be started."""

    def __init__(self, command: Sequence[str], selector: selectors.BaseSelector):
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self.process = process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert process.stdin and process.stdout and process.stderr  # they are pipes
        self.stdin = process.stdin
        self.selector, self.heard = selector, lambda line: None
        self.unread, self.stderr, self.flooded = b"", b"", False
        self.outputs = {
            ChildOutput(process.stdout): self._read_lines,
            ChildOutput(process.stderr): self._read_tail,
        }
        for output, read in self.outputs.items():
            selector.register(output, selectors.EVENT_READ, read)
        self.pidfd = None
        if hasattr(os, "pidfd_open"):  # its end is an event; elsewhere `has_exited` has to be polled
            with contextlib.suppress(OSError):
                self.pidfd = os.pidfd_open(self.process.pid)
                selector.register(self.pidfd, selectors.EVENT_READ, lambda _: 0)

    def begin(self, spec: dict[str, Any], heard: Callable[[dict[str, Any]], None]) -> None:
        """Send `spec` to the process, and call `heard` with each line of JSON it writes."""
        self.heard = heard
        with contextlib.suppress(OSError):  # it may be dead already
            self.stdin.write(json.dumps(spec).encode())
            self.stdin.close()

    def ask(self) -> None:
        """Ask the process to stop. On Windows, which has no such signal, it ends at once and saves nothing."""
        with contextlib.suppress(OSError):
            os.kill(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process and its descendants. Where there are no process groups, its ranks notice by themselves that
        it is gone.
        """
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self.process.pid, signal.SIGKILL)
            else:
                self.process.kill()

    def has_exited(self) -> bool:
        """Return True if the process has exited. It is left unreaped, so that its PID and process group stay valid."""
        if not hasattr(os, "waitid"):
            return self.process.poll() is not None
        try:
            return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it has been reaped elsewhere
            return True

    def reap(self) -> int:
        """Read the rest of the output, kill what the process left behind, and return its exit code."""
        self.kill()
        for output, read in self.outputs.items():
            output.wait_for_rest()
            while read(output):
                pass
            with contextlib.suppress(KeyError):
                self.selector.unregister(output)
            output.close()
        with contextlib.suppress(OSError):
            self.stdin.close()
        if self.pidfd is not None:
            self.selector.unregister(self.pidfd)
            os.close(self.pidfd)
        return self.process.wait()

    def last_words(self) -> str:
        """Return the last line of stderr."""
        lines = self.stderr.decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else ""

    def _read_lines(self, output: ChildOutput) -> int:
        chunk = self._chunk(output)
        *lines, self.unread = (self.unread + chunk).split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):  # not one of our lines
                self.heard(json.loads(line))
        if len(self.unread) > MAX_LINE:
            self.unread, self.flooded = b"", True
        return len(chunk)

    def _read_tail(self, output: ChildOutput) -> int:
        chunk = self._chunk(output)
        self.stderr = (self.stderr + chunk)[-TAIL:]
        return len(chunk)

    def _chunk(self, output: ChildOutput) -> bytes:
        chunk = output.read()
        if chunk == b"":
            with contextlib.suppress(KeyError):
                self.selector.unregister(output)
        return chunk or b""
