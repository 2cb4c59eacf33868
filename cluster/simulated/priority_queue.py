"""The priority queue at network ports, where messages may be overtaken while they wait to leave."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from cluster.simulated.event_queue import EventQueue

if TYPE_CHECKING:
    from cluster.network import Carrier


class PriorityQueue:
    """Messages that need the same `ports`. The lowest priority number leaves first; messages with equal numbers leave
    in the order of arrival.

    Only messages with a priority wait here. All others go ahead of them, as soon as a port is free.
    """

    def __init__(self, queue: EventQueue, ports: tuple[Carrier, ...]):
        self._events, self._ports = queue, ports
        self._waiting: list[tuple[int, int, Callable[[], None]]] = []

    def put(self, now: float, priority: int, leave: Callable[[], None]) -> None:
        """Arrange that `leave`, which occupies the ports, is called at `now` or as soon as possible after that.

        It is possible once all ports are free and no more urgent message waits.
        """
        heappush(self._waiting, (priority, self._events.serial(), leave))
        if len(self._waiting) == 1:
            self._events.call(max(now, self._free()), self._next)

    def _free(self) -> float:
        return max(port.free for port in self._ports)

    def _next(self) -> None:
        if self._free() <= self._events.now:
            _, _, leave = heappop(self._waiting)
            leave()
        if self._waiting:
            self._events.call(max(self._events.now, self._free()), self._next)
