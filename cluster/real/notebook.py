"""Notebooks: what a real rank writes down while it runs, and how the notes of all ranks become one record.

A rank knows when its messages left; when they arrived only their receivers know. It knows how long it stood in an
all-reduce, but not who came last. So it notes its own half and sends it on a few times a second; `Record`, on the
other side, puts the halves together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock
from typing import Any

from cluster.event_log import EventLog
from tracing import COMMUNICATE, UPDATE, WAIT

_TABLES = ("spans", "messages", "losses", "applied", "measures", "memory")
_APPENDED = (*_TABLES, "arrivals", "meetings")


class Notebook(EventLog):
    """An event log that is sent on while it is written; it is also the meter of its rank's kernels.

    arrivals   (src, row, arrived)     message number `row` of rank `src` has come here
    meetings   (group, call, size, entered, start, end, step, row, right)   a sum by torch.distributed, in which this
               rank was blocked from start to end; `row` is its message to its `right` neighbour on the ring
    """

    __slots__ = ("_lock", "_noted", "_reported", "arrivals", "meetings", "zero")

    def __init__(self, rank: int):
        super().__init__(rank, lambda: 0.0)
        self.zero = 0.0  # the run's start on the machine's monotonic clock
        self.arrivals: list[tuple] = []
        self.meetings: list[tuple] = []
        self._lock, self._noted = Lock(), 0
        self._reported: dict[tuple[int, int], int] = {}

    def begin(self, zero: float, clock: Callable[[], float]) -> None:
        """The run starts now: `clock` says the monotonic time, which was `zero` at its start."""
        self.zero, self.clock = zero, lambda: clock() - zero
        self.mark = self.clock()
        self.spans.clear()  # of finding each other

    def arrive(self, src: int, row: int, arrived: float) -> None:
        """A message of `src` has come; `arrived` is of the machine's clock. Called by the threads that read."""
        self.arrivals.append((src, row, arrived))

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        """A kernel was called: what has not been accounted for since the last mark was an update."""
        if not self.busy:
            start, self.mark = self.mark, self.clock()
            self.spans.append((UPDATE, start, self.mark, self.step, kernel))

    def blocked(self, start: float, ready: float, label: str) -> None:
        """This rank stood still since `start`; what it waited for was on its way from `ready` on."""
        self.mark = end = self.clock()
        ready = min(max(start, ready), end)
        if ready > start:
            self.spans.append((WAIT, start, ready, self.step, label))
        self.spans.append((COMMUNICATE, ready, end, self.step, label))

    def message(self, dst: int, tag: int, nbytes: int, sent: float) -> int:
        """Write down a message; gives its row."""
        with self._lock:
            self.messages.append((dst, tag, nbytes, sent, math.nan, tag < 0))
            self._noted += 1
            return self._noted - 1

    def take(self) -> dict[str, Any]:
        """Everything new since the last time. Another thread may be writing."""
        news: dict[str, Any] = {"step": self.step, "mark": self.mark}
        for name in _APPENDED:
            rows = getattr(self, name)
            count = len(rows)
            news[name] = rows[:count]
            del rows[:count]
        news["arrivals"] = [(src, row, arrived - self.zero) for src, row, arrived in news["arrivals"]]
        # the task thins its reports itself, so they stay where they are
        reports = [row for row in self.reports.copy() if row[0] > self._reported.get(row[2:4], 0)]
        new = {row[2:4] for row in reports if row[2:4] not in self._reported}
        self._reported.update({row[2:4]: row[0] for row in reports})
        return {**news, "reports": reports, "places": {key: self.places[key] for key in new if key in self.places}}


class Record:
    """The event logs of all ranks as far as they are known, put together from what the notebooks send."""

    def __init__(self, size: int):
        self.event_logs = [EventLog(rank, lambda: math.nan) for rank in range(size)]
        self._arrivals: list[tuple] = []
        self._meetings: dict[tuple, dict[int, tuple]] = {}

    def add(self, rank: int, news: dict[str, Any]) -> None:
        """Enter what a rank sent."""
        event_log = self.event_logs[rank]
        event_log.step, event_log.mark = news["step"], news["mark"]
        for name in (*_TABLES, "reports"):
            getattr(event_log, name).extend(news[name])
        event_log.places |= news["places"]
        self._arrivals += news["arrivals"]
        for group, call, *part in news["meetings"]:
            self._meetings.setdefault((group, call), {})[rank] = part

    def settle(self, over: bool = False) -> None:
        """Match what can be matched by now; once it is over, what is left stays as it is."""
        waiting = []
        for src, row, arrived in self._arrivals:
            if row < len(self.event_logs[src].messages):
                self._arrive(src, row, arrived)
            else:
                waiting.append((src, row, arrived))
        self._arrivals = waiting
        for key, parts in list(self._meetings.items()):
            if over or len(parts) == next(iter(parts.values()))[0]:
                self._meet(self._meetings.pop(key))

    def _meet(self, parts: dict[int, list]) -> None:
        """A sum cannot move before the last rank has come; its last bytes go to the right neighbour."""
        last = max(entered for _, entered, *_ in parts.values())
        for rank, (_, _, start, end, step, row, right) in parts.items():
            moving = min(max(start, last), end)
            if moving > start:
                self.event_logs[rank].spans.append((WAIT, start, moving, step, "all-reduce"))
            self.event_logs[rank].spans.append((COMMUNICATE, moving, end, step, "all-reduce"))
            if right in parts:
                self._arrive(rank, row, parts[right][3])

    def _arrive(self, src: int, row: int, arrived: float) -> None:
        dst, tag, nbytes, sent, _, collective = self.event_logs[src].messages[row]
        self.event_logs[src].messages[row] = (dst, tag, nbytes, sent, arrived, collective)
