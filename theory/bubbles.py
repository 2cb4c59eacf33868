"""Why a rank idles, and which ops form the critical path of a step.

An op could not start earlier because its rank was busy, or because something it needs was not done or was still in
transit. So every idle slot has a reason. Following the reasons back from the end gives the critical path: shortening
an op on it can shorten the step, shortening an op elsewhere cannot.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

from algorithms.parts.pipeline.ops import Op
from theory.op_graph import Graph
from theory.schedule_timing import Times


class Idle(NamedTuple):
    """A period in which `rank` idles, and the reason why."""

    rank: int
    start: float
    end: float
    reason: Literal["waits", "link", "over"]
    op: Op | None = None  # what could not start
    need: Op | None = None  # what it waited for
    on: int | None = None  # the rank that does what is needed

    def __str__(self) -> str:
        if self.reason == "over":
            return f"rank {self.rank} has nothing left to do"
        if self.reason == "link":
            return f"{self.op} waits for {self.need} to come over the link from rank {self.on}"
        return f"{self.op} waits for {self.need} of rank {self.on}"


def idle(times: Times) -> Iterator[Idle]:
    """Yield every idle slot, rank by rank and in order of time. A wait is split at the time its message is sent."""
    graph = Graph(times.lists)
    for rank, (starts, ends) in enumerate(zip(times.start, times.end, strict=True)):
        free = 0.0
        for n, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start > free:
                sent, op, need, on = _latest(times, graph, rank, n)[1:]
                if sent > free:
                    yield Idle(rank, free, min(sent, start), "waits", op, need, on)
                if start > sent:
                    yield Idle(rank, max(sent, free), start, "link", op, need, on)
            free = end
        if times.makespan > free:
            yield Idle(rank, free, times.makespan, "over")


def critical_path(times: Times) -> list[tuple[int, int]]:
    """Return the critical path: the ops, as (rank, position), that follow one another without slack from start to end.

    Each op is the reason why the next one cannot start earlier. Their durations, plus the latency wherever the path
    moves to another rank, add up to the makespan.
    """
    graph = Graph(times.lists)
    rank = next(rank for rank, ends in enumerate(times.end) if ends and ends[-1] == times.makespan)
    n = len(times.end[rank]) - 1
    path = [(rank, n)]
    while times.start[rank][n] > 0:
        first = graph.together(rank, n)[0]
        if first and times.end[rank][first - 1] == times.start[rank][n]:
            n = first - 1
        else:
            rank, n = graph.place[_latest(times, graph, rank, n).need]
        path.append((rank, n))
    return path[::-1]


class _Arrival(NamedTuple):
    at: float
    sent: float
    op: Op
    need: Op
    on: int


def _latest(times: Times, graph: Graph, rank: int, n: int) -> _Arrival:
    """Return the last input to arrive for the n-th op of `rank`, or for an op overlapped with it."""
    arrivals = []
    for position in graph.together(rank, n):
        op = times.lists[rank][position]
        for need in graph.needs(op):
            on, where = graph.place[need]
            sent = times.end[on][where]
            arrivals.append(_Arrival(sent + times.latency * (on != rank), sent, op, need, on))
    return max(arrivals)
