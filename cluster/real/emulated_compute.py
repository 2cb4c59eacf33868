"""Emulated computing on real ranks: kernels take as long as on the chosen device, or longer by a factor.

A rank computes, then waits until the time is up, so that its core is free for other ranks: eight ranks on two cores are
like eight machines as long as what they really compute fits into those cores.

    device          the time of a kernel is that device's (`cluster.devices`), times the rank's factor of this step
    without         the time of a kernel is the processor time it really took, times that factor
    pause           the rank waits from one time of the run's clock to another; work that this interrupts takes longer

With a device, messages are stamped with the time at which the device would have sent them, so that what the rank really
takes for Python and its sockets does not add up. A rank that falls behind by more than CATCH_UP has lost the time for
good; it is counted as `late`, and the run says so.
"""

from __future__ import annotations

import time

from cluster.devices import Device
from cluster.faults import Faults, Slowness
from cluster.real.event_log_stream import StreamedEventLog
from tracing import IDLE, PAUSED

CATCH_UP = 0.01  # s; a core that another program takes for a slice of the scheduler's is back sooner
SHORT = 5e-5  # s; what is shorter than a sleep can be is left for the next kernel


class EmulatedCompute:
    """The meter of a rank that lets its kernels take their time; `due` is when its work so far should have ended."""

    def __init__(self, event_log: StreamedEventLog, device: Device | None, faults: Faults, on_gpu: bool = False):
        self._event_log, self._device = event_log, device
        self._slowness, self._pauses = Slowness(faults, event_log.rank), list(faults.pause.get(event_log.rank, ()))
        self._lap = event_log.clock if on_gpu else time.thread_time  # which of the two says how long a kernel ran
        self._seen = self._lap()
        self.due = event_log.clock()

    @classmethod
    def wanted(
        cls, event_log: StreamedEventLog, device: Device | None, faults: Faults, on_gpu: bool = False
    ) -> EmulatedCompute | None:
        """Return the meter of this rank, None if nothing of its computing is emulated."""
        asked = device or faults.jitter or faults.slow or faults.pause
        return cls(event_log, device, faults, on_gpu) if asked else None

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        """Wait until the kernel that was just run should have ended, then record it."""
        event_log, factor = self._event_log, self._slowness.at(self._event_log.step)
        now, lap = event_log.clock(), self._lap()
        if self._device:
            if self.due < now - CATCH_UP:
                event_log.late += now - CATCH_UP - self.due
                self.due = now - CATCH_UP
            self.due += self._device.seconds(flops, nbytes) * factor
        else:
            self.due = max(self.due, now) + (factor - 1) * (lap - self._seen)
        if self._pauses:
            self._pause(self.due)
        if self.due - now > SHORT:
            time.sleep(self.due - now)
        self._seen = self._lap()
        event_log.charge(kernel, flops, nbytes)

    def keep(self, kind: str, nbytes: int) -> None:
        """Record that this rank holds `nbytes` more of this kind."""
        self._event_log.keep(kind, nbytes)

    def stamp(self, now: float) -> float:
        """Return the time at which this rank sends what it sends `now`."""
        return self.due if self._device and self.due > now - CATCH_UP else now

    def resume(self, arrived: float) -> None:
        """Continue after a wait for a message that arrived at this time."""
        self.due = max(self.due, arrived)
        if self._pauses:
            now = self._event_log.clock()
            self._pause(now, since=now)
            if self.due > now:
                time.sleep(self.due - now)
        self._seen = self._lap()

    def _pause(self, until: float, since: float | None = None) -> None:
        """Take the pauses that begin before `until`; one that interrupts a wait, since `since`, is over when it is."""
        while self._pauses and self._pauses[0][0] <= max(until, self.due):
            start, end = self._pauses.pop(0)
            start = start if since is None else max(start, since)
            if end > start:
                self._event_log.spans.append((IDLE, start, end, self._event_log.step, PAUSED))
                self.due = self.due + (end - start) if since is None else max(self.due, end)
