"""The pool's spare process, which has imported everything and waits for the next job."""

import contextlib
import selectors
from collections.abc import Sequence

from experiments.jobs.process import Child
from experiments.runs.summary import source_version


class Spare:
    """At most one process of `command`, started in advance once `wanted`. Only the selector's thread may use it."""

    def __init__(self, command: Sequence[str], selector: selectors.BaseSelector):
        self.command, self.selector, self.wanted = tuple(command), selector, False
        self._child: Child | None = None
        self._version = ""  # version of the source that it has loaded

    def prepare(self, free: bool) -> None:
        """Start the spare process if it is wanted and missing, and a core is `free` for its imports. One that has ended
        by itself is not replaced.
        """
        if self._child and self._child.has_exited():
            self.wanted = False  # another would end the same way; jobs are started on demand
            self.dismiss()
        if self.wanted and free and not self._child:
            with contextlib.suppress(OSError):
                self._version = source_version()
                self._child = Child([*self.command, "early"], self.selector)

    def take(self, version: str) -> Child | None:
        """Hand over the process if it is running and has loaded this version of the source; otherwise end it and return
        None.
        """
        if self._child and self._version == version and not self._child.has_exited():
            child, self._child = self._child, None
            return child
        self.dismiss()
        return None

    def dismiss(self) -> None:
        if self._child:
            self._child.reap()
            self._child = None
