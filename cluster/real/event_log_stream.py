"""Event logs of real ranks, which are streamed to the parent as they are written, and merged there.

A rank knows when its messages left, but only their receivers know when they arrived. It knows how long it was blocked
in an all-reduce by torch.distributed or in shared memory, but not which rank entered last. Each rank therefore streams
its half of these facts a few times a second, and `MergedEventLogs` matches the halves.
"""

import math
from collections.abc import Callable
from threading import Lock, get_native_id
from typing import Any

from cluster.event_log import EventLog
from tracing import COMMUNICATE, UPDATE, WAIT

_TABLES = ("spans", "messages", "losses", "applied", "measures", "memory", "remarks")
_APPENDED = (*_TABLES, "arrivals", "all_reduces")


class StreamedEventLog(EventLog):
    """An event log that is streamed to the parent as it is written. It is also the meter of its rank's kernels.

    arrivals      (src, row, arrived)     message number `row` of rank `src` has arrived here
    all_reduces   (group, call, size, entered, start, end, step, row, right)   an all-reduce by torch.distributed or
                  in shared memory, in which this rank was blocked from start to end; `row` is its message to `right`,
                  the rank's neighbour in the ring
    """

    __slots__ = ("_began", "_lock", "_logged", "_reported", "_thread", "all_reduces", "arrivals", "zero")

    def __init__(self, rank: int):
        super().__init__(rank, lambda: 0.0)
        self.zero = 0.0  # the run's start on the machine's monotonic clock
        self.arrivals: list[tuple] = []
        self.all_reduces: list[tuple] = []
        self._lock, self._logged = Lock(), 0
        self._thread, self._began = get_native_id(), (0.0, 0.0)
        self._reported: dict[tuple[int, int], int] = {}

    def begin(self, zero: float, clock: Callable[[], float]) -> None:
        """Start the run's clock. `clock()` is a monotonic clock that showed `zero` at the start of the run."""
        self.zero, self.clock = zero, lambda: clock() - zero
        self.mark = self.clock()
        self.spans.clear()  # drop those of connecting to each other
        self._thread = get_native_id()
        self._began = on_core(self._thread)

    def go_on(self, counts: dict[str, float], step: int, messages: int) -> None:
        """Continue the event log of a previous incarnation.

        That incarnation had reached `step`, the `counts` by name (see COUNTS), and `messages` rows of messages.
        """
        self.step, self._logged = step, messages
        for name, value in counts.items():
            setattr(self, name, value)
        ran, starved = self._began
        self._began = ran - self.ran, starved - self.starved

    def freeze(self) -> None:
        """Block all further messages: a thread that tries to record one will wait forever."""
        self._lock.acquire()

    def arrive(self, src: int, row: int, arrived: float, overdue: float = 0.0) -> None:
        """Record that message `row` of `src` arrived at this monotonic time, `overdue` seconds later than it should
        have.

        Called by the thread that delivers the message; calls never overlap.
        """
        self.arrivals.append((src, row, arrived))
        self.overdue += overdue

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Count the FLOPs of a kernel call.

        If no span is open, record the time since the last recorded event as an update.
        """
        self.flops += flops
        if not self.busy:
            start, self.mark = self.mark, self.clock()
            self.spans.append((UPDATE, start, self.mark, self.step, kernel))

    def record_blocked(self, start: float, ready: float, label: str) -> None:
        """Record that this rank has been blocked since `start` by a transfer that could not begin before `ready`."""
        self.mark = end = self.clock()
        ready = min(max(start, ready), end)
        if ready > start:
            self.spans.append((WAIT, start, ready, self.step, label))
        self.spans.append((COMMUNICATE, ready, end, self.step, label))

    def message(self, dst: int, tag: int, nbytes: int, sent: float) -> int:
        """Record a message to `dst` and return its row number."""
        with self._lock:
            self.messages.append((dst, tag, nbytes, sent, math.nan, tag < 0))
            self._logged += 1
            return self._logged - 1

    def take(self) -> dict[str, Any]:
        """Remove and return all rows recorded since the last call. Another thread may be writing at the same time."""
        self.ran, self.starved = (now - then for now, then in zip(on_core(self._thread), self._began, strict=True))
        news: dict[str, Any] = {name: getattr(self, name) for name in ("step", "mark", *self.COUNTS)}
        for name in _APPENDED:
            rows = getattr(self, name)
            count = len(rows)
            news[name] = rows[:count]
            del rows[:count]
        news["arrivals"] = [(src, row, arrived - self.zero) for src, row, arrived in news["arrivals"]]
        # reports stay in the log, because the task thins them out itself
        reports = [row for row in self.reports.copy() if row[0] > self._reported.get(row[2:4], 0)]
        new = {row[2:4] for row in reports if row[2:4] not in self._reported}
        self._reported.update({row[2:4]: row[0] for row in reports})
        return {**news, "reports": reports, "places": {key: self.places[key] for key in new if key in self.places}}


def on_core(thread: int) -> tuple[float, float]:
    """Return how long this thread had a core, and how long it waited for a core, in s; 0 if unknown."""
    try:
        with open(f"/proc/self/task/{thread}/schedstat", encoding="ascii") as file:
            ran, waited, _ = file.read().split()
    except (OSError, ValueError):  # not Linux, or a Linux without these statistics
        return 0.0, 0.0
    return int(ran) * 1e-9, int(waited) * 1e-9


class MergedEventLogs:
    """The event logs of all ranks, merged from what the ranks have streamed so far."""

    def __init__(self, size: int):
        self.event_logs = [EventLog(rank, lambda: math.nan) for rank in range(size)]
        self._arrivals: list[tuple] = []
        self._all_reduces: dict[tuple, dict[int, list]] = {}

    def add(self, rank: int, news: dict[str, Any]) -> None:
        """Append what rank `rank` sent, as returned by `StreamedEventLog.take`."""
        event_log = self.event_logs[rank]
        for name in ("step", "mark", *event_log.COUNTS):
            setattr(event_log, name, news[name])
        for name in (*_TABLES, "reports"):
            getattr(event_log, name).extend(news[name])
        event_log.places |= news["places"]
        self._arrivals += news["arrivals"]
        for group, call, *part in news["all_reduces"]:
            self._all_reduces.setdefault((group, call), {})[rank] = part

    def match(self, over: bool = False) -> None:
        """Match arrivals with messages, and the parts of each all-reduce with each other, as far as they are known.

        `over` means that the run has ended: all-reduces that some rank never entered are then recorded with the parts
        that exist.
        """
        waiting = []
        for src, row, arrived in self._arrivals:
            if row < len(self.event_logs[src].messages):
                self._arrive(src, row, arrived)
            else:
                waiting.append((src, row, arrived))
        self._arrivals = waiting
        for key, parts in list(self._all_reduces.items()):
            if over or len(parts) == next(iter(parts.values()))[0]:
                self._merge_all_reduce(self._all_reduces.pop(key))

    def _merge_all_reduce(self, parts: dict[int, list]) -> None:
        """Record the spans of an all-reduce. Ranks wait until the last one has entered, then the data moves."""
        last = max(entered for _, entered, *_ in parts.values())
        for rank, (_, _, start, end, step, row, right) in parts.items():
            moving = min(max(start, last), end)
            if moving > start:
                self.event_logs[rank].spans.append((WAIT, start, moving, step, "all-reduce"))
            self.event_logs[rank].spans.append((COMMUNICATE, moving, end, step, "all-reduce"))
            if right in parts:  # the last bytes reach the right neighbour when that rank is done
                self._arrive(rank, row, parts[right][3])

    def _arrive(self, src: int, row: int, arrived: float) -> None:
        dst, tag, nbytes, sent, _, collective = self.event_logs[src].messages[row]
        self.event_logs[src].messages[row] = (dst, tag, nbytes, sent, arrived, collective)
