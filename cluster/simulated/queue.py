"""Queue: what waits for network ports and may be overtaken there."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush


class Queue:
    """Those who need the same `ports` at once: the lowest number goes first, equal ones as they came.

    Only what was given a priority waits here. Everything else takes a port as soon as it is free, that is first.
    """

    def __init__(self, sim, ports: tuple[int, ...]):
        self.sim, self.ports = sim, ports
        self.waiting: list[tuple] = []

    def put(self, now: float, priority: int, go: Callable[[], None]) -> None:
        """Call `go`, which takes the ports, once they are free and nobody more urgent is there; not before `now`."""
        heappush(self.waiting, (priority, self.sim.serial(), go))
        if len(self.waiting) == 1:
            self.sim.at(max(now, self._free()), self._next)

    def _free(self) -> float:
        return max(self.sim.out_free[port] for port in self.ports)

    def _next(self) -> None:
        if self._free() <= self.sim.now:
            heappop(self.waiting)[2]()
        if self.waiting:
            self.sim.at(max(self.sim.now, self._free()), self._next)
