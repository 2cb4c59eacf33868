"""The memory footprint of a solution's process, as Linux reports it.

    resident    the high-water mark of all pages (VmHWM): it includes memory held only between two messages
    kept        pages that belong to this process alone, in memory, swap or huge pages, at each message

A process can hide memory from `resident` by releasing pages of Python's own files and filling their place with vectors.
Memory kept from one message to the next shows in `kept`. Both are relative to the time before the solution was
loaded.
"""

import contextlib
import re
from math import inf

FIELDS = re.compile(rb"^(VmHWM|RssAnon|RssShmem|VmSwap|HugetlbPages):\s+(\d+) kB$", re.M)


class Footprint:
    """The memory of one process, relative to its memory when this object was created."""

    def __init__(self, process: int):
        self._status, self._before, self._most = None, None, 0
        with contextlib.suppress(OSError):
            self._status = open(f"/proc/{process}/status", "rb", buffering=0)  # noqa: SIM115
        self._before = self._now()

    def look(self) -> tuple[int, int] | None:
        """Return the current (resident, kept) in bytes, or None if the process has ended. This also updates the maximum
        of `kept`.
        """
        now = self._now()
        if now and self._before:
            self._most = max(self._most, now[1] - self._before[1])
        return now

    def peak(self) -> float | None:
        """Return the peak so far, in bytes. It is None where memory cannot be measured, and infinity if the process has
        ended.
        """
        if not self._before:
            return None
        now = self.look()
        return max(now[0] - self._before[0], self._most) if now else inf

    def close(self) -> None:
        if self._status:
            self._status.close()
        self._status = None

    def _now(self) -> tuple[int, int] | None:
        fields: dict[bytes, int] = {}
        with contextlib.suppress(OSError):
            if self._status:
                self._status.seek(0)
                fields = {name: 1024 * int(kilobytes) for name, kilobytes in FIELDS.findall(self._status.read(8192))}
        resident = fields.pop(b"VmHWM", None)  # a process that has ended has none
        return None if resident is None else (resident, sum(fields.values()))
