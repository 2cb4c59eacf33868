"""The event queue of the simulated cluster: a heap of (time, serial, event), and the clock.

Events happen in the order of (time, serial), so ties are always resolved in the same way and a run is a pure function
of its arguments. An event has a method `happen(time)`, which returns the actor that can continue, or None:

    Delivery        the first byte of a message reaches its receiver's port (`mailbox.py`)
    Actor           continues (`actor.py`)
    ScheduledCall   calls a function: to start, crash or restart a rank
    CompiledLoop    processes events of its own (`compiled_loop.py`)

As in SimPy, a process is suspended while it waits. Here a process is a strand (`cluster/strands`), so its code is plain
and blocking, and there is no central loop: an actor that must wait runs the queue itself until some actor can continue,
and switches directly to that one. An actor may also run ahead of the clock, since no event can change its past. It
calls `sync` where order matters: before it receives from any rank, polls, or uses shared memory or a shared port.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Any

from cluster.strands import FASTEST

if TYPE_CHECKING:
    from cluster.simulated.actor import Actor
    from cluster.simulated.compiled_loop import CompiledLoop
    from cluster.simulated.mailbox import Delivery


class Hub:
    """The strand that started the run and is the parent of all other strands. It makes all scheduled calls."""

    def __init__(self, strand: Any = FASTEST):
        self.strand = strand.getcurrent()
        self.calls: list[ScheduledCall] = []


class ScheduledCall:
    """An event at which the hub calls a function."""

    __slots__ = ("args", "function", "hub")

    def __init__(self, hub: Hub, function: Callable, args: tuple):
        self.hub, self.function, self.args = hub, function, args

    def happen(self, time: float) -> Hub:
        """Hand the call to the hub, and return the hub, which can continue."""
        self.hub.calls.append(self)
        return self.hub


class EventQueue:
    """The pending events, and the time of the last one processed. `tick()` is called every 256 events.

    `strand` is the type of the strands that are suspended while they wait; see `cluster.strands`.
    """

    def __init__(self, tick: Callable[[], None], strand: Any = FASTEST):
        self.now = 0.0  # s
        self.serial = count().__next__
        self.hub = Hub(strand)
        self._heap: list[tuple[float, int, Delivery | Actor | ScheduledCall | CompiledLoop]] = []
        self._tick, self._running = tick, True

    def push(self, time: float, event: Delivery | Actor | ScheduledCall) -> None:
        heappush(self._heap, (time, self.serial(), event))

    def call(self, time: float, function: Callable, *args: Any) -> None:
        """Schedule the call `function(*args)` for `time`."""
        self.push(time, ScheduledCall(self.hub, function, args))

    def first(self) -> tuple[float, int]:
        """Return (time, serial) of the next event, or (inf, 0) if there is none."""
        return (float(self._heap[0][0]), self._heap[0][1]) if self._heap else (math.inf, 0)

    def waiting(self, kind: type) -> list[tuple[float, Any]]:
        """Return (time, event) for every scheduled event of this kind."""
        return [(time, event) for time, _, event in self._heap if isinstance(event, kind)]

    def stand_in(self, time: float, serial: int, event: CompiledLoop) -> None:
        """Schedule a compiled loop on behalf of the next event in its own queue, with that event's time and serial
        number.
        """
        heappush(self._heap, (time, serial, event))

    def skip(self, now: float, serial: int) -> None:
        """Set the clock and the serial number to those that a compiled loop has reached in its own queue."""
        self.now, self.serial = now, count(serial).__next__

    def run(self) -> None:
        """Process events until the queue is empty. Called once, by the hub."""
        hub = self.hub
        while self._heap and self._running:
            self.wait(hub)
            while hub.calls:
                call = hub.calls.pop()
                call.function(*call.args)

    def wait(self, actor: Actor | Hub) -> None:
        """Process events until `actor` can continue; for the hub, until the queue is empty."""
        heap = self._heap
        while heap and self._running:
            self.now, serial, event = heappop(heap)
            if not serial & 255:
                self._tick()
            ready = event.happen(self.now)
            if ready is None:
                continue
            if ready is not actor:
                ready.strand.switch()
            return
        if actor is not self.hub:
            self.hub.strand.switch()

    def sync(self, actor: Actor) -> None:
        """Process all events up to the time of `actor`."""
        if self._heap and self._heap[0][0] <= actor.now:
            self.push(actor.now, actor)
            self.wait(actor)

    def stop(self) -> None:
        self._running = False
