"""Emulated compute on real ranks: kernels take as long as on the chosen device, or longer by some factor.

A rank computes, then waits until the time is up, so that its core is free for other ranks. Eight ranks on two cores
behave like eight machines as long as their actual computation fits into those cores.

    device          a kernel takes its time on that device (`cluster.devices`), times the rank's factor of this step
    no device       a kernel takes the processor time that it actually needed, times that factor
    pause           the rank waits from one time on the run's clock to another; interrupted work takes longer

With a device, messages carry the time at which that device would have sent them, so the rank's own overhead for Python
and sockets does not accumulate. A rank that falls behind by more than CATCH_UP does not catch up; the excess is counted
in `late` and reported in the run's notes.
"""

from __future__ import annotations

import time

from cluster.devices import Device
from cluster.faults import Faults, Slowness
from cluster.real.event_log_stream import StreamedEventLog
from tracing import IDLE, PAUSED

CATCH_UP = 0.01  # s; longer than another program keeps a core, which is one slice of the scheduler's
SHORT = 5e-5  # s; too short for a sleep, so this time is left for the next kernel


class EmulatedCompute:
    """A rank's meter that makes kernels take their emulated time. `due` is when the rank's work so far should end."""

    def __init__(self, event_log: StreamedEventLog, device: Device | None, faults: Faults, on_gpu: bool = False):
        self._event_log, self._device = event_log, device
        self._slowness, self._pauses = Slowness(faults, event_log.rank), list(faults.pause.get(event_log.rank, ()))
        self._lap = event_log.clock if on_gpu else time.thread_time  # the clock that times kernels
        self._seen = self._lap()
        self.due = event_log.clock()

    @classmethod
    def create_if_needed(
        cls, event_log: StreamedEventLog, device: Device | None, faults: Faults, on_gpu: bool = False
    ) -> EmulatedCompute | None:
        """Return the meter of this rank, or None if nothing about its computation is emulated."""
        needed = device or faults.jitter or faults.slow or faults.pause
        return cls(event_log, device, faults, on_gpu) if needed else None

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Wait until the kernel that just ran should have ended, then record it."""
        event_log, factor = self._event_log, self._slowness.at(self._event_log.step)
        now, lap = event_log.clock(), self._lap()
        if self._device:
            if self.due < now - CATCH_UP:
                event_log.late += now - CATCH_UP - self.due
                self.due = now - CATCH_UP
            self.due += self._device.seconds(flops, nbytes, itemsize) * factor
        else:
            self.due = max(self.due, now) + (factor - 1) * (lap - self._seen)
        if self._pauses:
            self._pause(self.due)
        if self.due - now > SHORT:
            time.sleep(self.due - now)
        self._seen = self._lap()
        event_log.charge(kernel, flops, nbytes)

    def keep(self, kind: str, nbytes: int) -> None:
        """Record that this rank holds `nbytes` bytes more of this kind."""
        self._event_log.keep(kind, nbytes)

    def stamp(self, now: float) -> float:
        """Return the time at which the emulated device sends a message that this rank sends `now`."""
        return self.due if self._device and self.due > now - CATCH_UP else now

    def resume(self, arrived: float) -> None:
        """Continue the emulated work after a wait for a message that arrived at time `arrived`."""
        self.due = max(self.due, arrived)
        if self._pauses:
            now = self._event_log.clock()
            self._pause(now, since=now)
            if self.due > now:
                time.sleep(self.due - now)
        self._seen = self._lap()

    def _pause(self, until: float, since: float | None = None) -> None:
        """Apply the pauses that begin before `until`.

        A pause delays work by the duration of the pause. A wait, for which `since` is given, ends when both the wait
        and the pause are over.
        """
        while self._pauses and self._pauses[0][0] <= max(until, self.due):
            start, end = self._pauses.pop(0)
            start = start if since is None else max(start, since)
            if end > start:
                self._event_log.spans.append((IDLE, start, end, self._event_log.step, PAUSED))
                self.due = self.due + (end - start) if since is None else max(self.due, end)
