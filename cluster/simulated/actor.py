"""Actors of the simulated cluster: processes with their own time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.simulated.mailbox import Delivery
    from cluster.simulated.rank import Rank


class Actor:
    """A simulated process with its own time: a rank, or a collective that runs in the background of a rank."""

    interruptible = False  # a rank's background is ended with the rank, when the clock reaches the crash
    __slots__ = ("blocked_since", "collective", "strand", "inbox", "now", "rank", "source", "source_world", "waits")

    def __init__(self, rank: Rank, now: float):
        self.rank, self.now = rank, now
        self.blocked_since = now
        self.source: int | None = None  # while it waits for a message: from which rank of the group, None for any
        self.source_world: int | None = None  # the world rank of that one
        self.collective = ""  # the one in progress
        self.strand: Any = None  # which runs it, once it is spawned
        self.waits: list[tuple[float, float]] = []  # in the background: (start, end) of waits for unsent messages, s
        self.inbox: Delivery | None = None  # the message for which it was woken

    def happen(self, time: float) -> Actor:
        """Return this actor, which continues now: in the event queue, an actor is its own wake-up event."""
        return self

    def wait_until(self, time: float) -> None:
        """Advance to `time`, unless that is in the past."""
        self.now = max(self.now, time)

    def receive(self, sent: float, arrived: float) -> None:
        """Advance to the arrival of a message, and record how long this actor waited until it was sent."""
        if arrived > self.now:
            if sent > self.now:
                self.waits.append((self.now, min(sent, arrived)))
            self.now = arrived

    def communicate(self, seconds: float) -> None:
        """Advance by the processor time of a send."""
        self.now += seconds

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Advance by the price of a kernel. An actor in the background takes none of its rank's time."""
        self.rank.event_log.flops += flops
        self.now += self.rank.sim.device.seconds(flops, nbytes, itemsize) * self.rank.slowness()

    def interrupt(self) -> None:
        """Do nothing. Pauses and a crash interrupt the rank itself, whose time may be far ahead of this actor's."""

    def keep(self, kind: str, nbytes: int) -> None:
        """Record that the rank holds `nbytes` bytes more memory of this kind."""
        self.rank.event_log.keep(kind, nbytes)
