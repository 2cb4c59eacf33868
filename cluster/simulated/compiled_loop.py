"""The compiled loop of a run: the tables on which `compiled_events.advance` works, and its place in the event queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from cluster.simulated.collective_program import Program
from cluster.simulated.compiled_events import CHARGE, EVENT, MESSAGE, OPERATION, RANK, ROUTE, SPAN, advance
from tracing import MESSAGE_CELLS

if TYPE_CHECKING:
    from cluster.simulated.event_queue import EventQueue
    from cluster.simulated.ports import Ports
    from cluster.simulated.rank import Rank

AT_ONCE = 1 << 16  # events processed between two reports of progress


class CompiledLoop:
    """The ranks inside compiled collectives, and their events. The loop stands in for these in the event queue."""

    def __init__(self, queue: EventQueue, ports: Ports, size: int, tick: Callable[[], None]):
        self._queue, self._ports, self._tick = queue, ports, tick
        self.inside: dict[int, Rank] = {}  # by world rank
        self.ranks = np.zeros(size, RANK)
        self.ranks["awaited"] = -1
        self._operations, self._routes = np.empty(0, OPERATION), np.empty(0, ROUTE)
        self._programs: dict[Program, int] = {}  # where the operations of each begin
        self._tables: dict[
            tuple[tuple[int, ...], Program], int
        ] = {}  # where the routes of each group and program begin
        self._prices = np.zeros((size, 0))  # s
        self.messages, self.rows, self._spans = np.empty(0, MESSAGE), np.empty(0, MESSAGE_CELLS), np.empty(0, SPAN)
        self._unused: dict[int, list[int]] = {}  # by length, the pieces of these three tables that are free again
        self._heap, self._depth = np.empty(size, EVENT), 0
        self._due: set[tuple[float, int]] = set()  # (time, serial) of its events that are in the event queue

    def reserve(self, program: Program, members: Sequence[int]) -> slice:
        """Reserve a piece of the tables for a collective of these world ranks, and fill in the routes of its messages.
        Return the piece as a slice of `messages` and `rows`.
        """
        if program not in self._programs:
            self._programs[program] = len(self._operations)
            self._operations = np.concatenate((self._operations, program.operations))
            more = len(program.prices) - self._prices.shape[1]
            self._prices = np.pad(self._prices, ((0, 0), (0, max(0, more))))
        table = tuple(members), program
        if table not in self._tables:
            self._tables[table] = len(self._routes)
            pairs = [(members[src], members[dst]) for src, dst in program.pairs]
            self._routes = np.concatenate((self._routes, self._ports.routes(pairs)))
        count = len(program.receivers)
        if not self._unused.setdefault(count, []):
            self._unused[count].append(len(self.messages))
            self.messages, self.rows = extend(self.messages, count), extend(self.rows, count)
            self._spans, self._heap = extend(self._spans, 2 * count), extend(self._heap, count)
        first = self._unused[count].pop()
        piece = slice(first, first + count)
        self.messages["route"][piece] = self._tables[table] + program.routes
        return piece

    def release(self, piece: slice) -> None:
        """Free a piece of the tables for later collectives."""
        self._unused[piece.stop - piece.start].append(piece.start)

    def enter(self, rank: Rank, program: Program, number: int, first: int, seconds: np.ndarray) -> None:
        """Perform the operations of rank `number` of the program on behalf of `rank`; return once all of them are done.

        `first` is where the messages of its collective begin; `seconds` is what each price costs on this rank.
        """
        state, begin = self.ranks[rank.number], self._programs[program]
        state["next"], state["end"] = begin + program.starts[number], begin + program.starts[number + 1]
        state["now"], state["recorded"], state["shares"] = rank.now, rank.recorded, not rank.window
        state["first"], state["spans"] = first, 2 * first + program.spans[number]
        state["first_span"] = state["spans"]
        self._prices[rank.number, : len(seconds)] = seconds
        self.inside[rank.number] = rank
        if self._advance(rank.number, 0) != rank.number:
            rank.blocked_since = rank.now
            self._queue.wait(rank)
        del self.inside[rank.number]

    def happen(self, time: float) -> Rank | None:
        """Process the events that are due. Return the rank that has finished, if there is one."""
        self._due = {due for due in self._due if due[0] >= time}
        finished = self._advance(-1, AT_ONCE)
        self._tick()
        return self.inside.get(finished)

    def _advance(self, rank: int, most: int) -> int:
        queue = self._queue
        rank, serial, self._depth, happened, time, due, due_serial = advance(
            *(rank, queue.first(), queue.serial(), most, self.ranks, self._operations, self.messages, self.rows),
            *(self._routes, self._prices, self._ports.free, self._spans, self._heap, self._depth),
        )
        queue.skip(time if happened else queue.now, serial)
        if self._depth and (due, due_serial) not in self._due:
            self._due.add((due, due_serial))
            queue.stand_in(due, due_serial, self)
        return rank

    def spans(self, rank: int) -> list[tuple[int, float, float]]:
        """Return (kind, start, end) of each span of `rank` inside its collective."""
        state = self.ranks[rank]
        return self._spans[state["first_span"] : state["spans"]].tolist()

    def charged_prices(self, rank: int, program: Program, number: int) -> list[int]:
        """Return the prices that `rank`, which is rank `number` of its group, was charged inside its collective."""
        state, begin = self.ranks[rank], self._programs[program]
        if state["next"] == state["end"]:
            return program.charges[number]
        done = self._operations["does"][begin + program.starts[number] : state["next"]]
        return program.charges[number][: np.count_nonzero(done == CHARGE)]


def extend(table: np.ndarray, count: int) -> np.ndarray:
    """Return a copy of `table` with `count` more rows."""
    return np.concatenate((table, np.empty(count, table.dtype)))
