"""Compiled collectives: message by message, but nobody runs the ranks that are inside; see `compiled_events.py`.

A rank that enters is blocked until a compiled loop has taken it through its operations; the messages go through the
same ports at the same times as others' and have their rows in the trace. The vectors are summed once for all ranks, when
the first of them has finished: by then all have entered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import kernels
from cluster import collectives
from cluster.comm import COLLECTIVE, shares
from cluster.simulated.collective_program import recorded
from cluster.simulated.compiled_events import CHARGE, EVENT, RANK, SPAN, advance
from cluster.simulated.ring_recurrence import ring_sum
from kernels import METER, Meter, metered
from tracing import MESSAGE_CELLS

if TYPE_CHECKING:
    from cluster.simulated.comm import SimulatedComm
    from cluster.simulated.rank import Rank


def _sum(x: np.ndarray, total: np.ndarray, piece: slice) -> None:
    x[...] = total


def _piece(x: np.ndarray, total: np.ndarray, piece: slice) -> np.ndarray:
    return total[piece].copy()


def _nothing(x: None, total: None, piece: None) -> None:
    return None


COMPILED = {collectives.ring: _sum, collectives.reduce_scatter: _piece, collectives.barrier: _nothing}
"""What a rank makes of its vector and the sum of all, in the order of a ring, at the end of each of these."""

AT_ONCE = 1 << 16  # events between two reports of progress


def can_run(comm: SimulatedComm, algorithm: Callable, args: tuple) -> bool:
    """Return whether the compiled loop knows this collective; a rank that may stop inside one goes step by step."""
    faults = comm._sim.faults
    return algorithm in COMPILED and not faults.crash and not faults.pause and (not args or type(args[0]) is np.ndarray)


def run(comm: SimulatedComm, algorithm: Callable, x: np.ndarray | None = None, scale: float = 1.0) -> Any:
    """Take part in a collective as the rank of `comm`; return what `algorithm(comm, x, scale)` does.

    Raises ValueError if the ranks of the group are not in the same collective.
    """
    sim = comm._sim
    comm._entered += 1
    key = (comm._group, "compiled", comm._entered)
    wanted = algorithm, comm.size, None if x is None else len(x), None if x is None else x.dtype.str, scale
    work = sim.pending.get(key)
    if work is None:
        work = sim.pending[key] = CompiledCollective(comm, *wanted)
        sim.compiled.append(work)
    if wanted != work.wanted:
        ours, theirs = (f"{what[0].__name__} of {what[2]} numbers ({what[3]})" for what in (wanted, work.wanted))
        raise ValueError(f"rank {comm.rank} is in {ours}, others of its group in {theirs}; they must be alike.")
    work.expected -= 1
    if not work.expected:
        del sim.pending[key]
    return work.take_part(comm.rank, comm._rank, x)


class CompiledCollective:
    """A collective in progress; in the event queue it is the event that lets its own events happen."""

    def __init__(self, comm: SimulatedComm, *wanted: Any):
        self.wanted = wanted
        algorithm, size, length, dtype, self._scale = wanted
        self.expected = self._remaining = size
        self._sim, self._queue, self._group, self._members = comm._sim, comm._queue, comm._group, comm.members
        self._program = program = recorded(algorithm, size, length, dtype, self._scale != 1.0)
        self._result, self._total = COMPILED[algorithm], None
        self._pieces = [None] * size if length is None else shares(length, size)
        self._vectors: list[np.ndarray | None] = [None] * size
        self._meters: list[Meter | None] = [None] * size
        self._inside: dict[int, Rank] = {}

        count, device = len(program.messages), self._sim.device
        self._seconds = np.array([device.seconds(flops, nbytes) for _, flops, nbytes in program.prices])
        self._flops = [flops for _, flops, _ in program.prices]
        self._prices = np.zeros((size, len(program.prices)))  # s, by rank
        self._ranks, self._spans = np.zeros(size, RANK), np.empty(2 * count, SPAN)
        self._ranks["next"], self._ranks["end"], self._ranks["awaited"] = program.starts[:-1], program.starts[1:], -1
        self._ranks["first_span"] = self._ranks["spans"] = program.spans
        self._heap, self._depth = np.empty(count + size, EVENT), 0
        self._due: set[int] = set()  # serials of the events that it stands for in the event queue
        self._routes = self._sim.ports.table(self._members, program.pairs)
        self._rows = np.empty(count, MESSAGE_CELLS)
        self._rows["dst"], self._rows["bytes"] = np.array(self._members)[program.messages["dst"]], program.nbytes
        self._rows["tag"], self._rows["collective"], self._rows["arrived"] = COLLECTIVE, True, np.nan

    def take_part(self, number: int, rank: Rank, x: np.ndarray | None) -> Any:
        """Let rank `number` of the group go through its operations; return its result."""
        self._inside[number], self._vectors[number], self._meters[number] = rank, x, METER.get()
        state = self._ranks[number]
        state["now"], state["recorded"], state["shares"] = rank.now, rank.recorded, not rank.window
        if self._meters[number] is rank:
            self._prices[number] = self._seconds * (rank.slowness() if rank.jitter else rank.slow)
        if self._advance(number, 0) != number:
            rank.blocked_since = rank.now
            self._queue.wait(rank)
        if x is not None and self._total is None:
            self._add_up()
        del self._inside[number]
        self._write(number, rank)
        self._remaining -= 1
        if not self._remaining:
            self._sim.compiled.remove(self)
        return self._result(x, self._total, self._pieces[number])

    def happen(self, time: float) -> Rank | None:
        """Let the events happen that are due; return the rank that has finished, if one has."""
        finished = self._advance(-1, AT_ONCE)
        self._sim.tick()
        return self._inside.get(finished)

    def _advance(self, number: int, most: int) -> int:
        """Let a rank of the group, or none, go on until it waits, and then at most so many events happen."""
        queue, program = self._queue, self._program
        number, serial, self._depth, happened, time, *due = advance(
            *(number, queue.first(), queue.serial(), most, self._ranks, program.operations, program.messages),
            *(self._rows, self._routes, self._prices, self._sim.ports.free, self._spans, self._heap, self._depth),
        )
        queue.skip(time if happened else queue.now, serial)
        if self._depth and due[1] not in self._due:
            self._due.add(due[1])
            queue.stand_in(*due, self)
        return number

    def _add_up(self) -> None:
        """Sum the vectors in the order of the ring, and let go of them."""
        with metered(None):
            self._total = ring_sum(self._vectors, self._pieces)
            if self._scale != 1.0:
                kernels.scale(self._total, self._scale)
        self._vectors = []

    def _write(self, number: int, rank: Rank) -> None:
        """Write into a rank and its event log what it has done here."""
        program, state, event_log = self._program, self._ranks[number], rank.event_log
        name, step = rank.collective, event_log.step
        spans = self._spans[program.spans[number] : state["spans"]].tolist()
        for first in spans[:1]:
            rank.span(*first, name)  # it may continue the last one before
        event_log.spans.extend((kind, start, end, step, name) for kind, start, end in spans[1:])
        rank.now, rank.recorded = float(state["now"]), float(state["recorded"])
        if self._rows.size:
            event_log.messages.add(self._rows[program.sends[number] : program.sends[number + 1]])
        meter, charges = self._meters[number], program.charges[number]
        if state["next"] < state["end"]:
            done = program.operations["does"][program.starts[number] : state["next"]]
            charges = charges[: np.count_nonzero(done == CHARGE)]
        if meter is rank:
            event_log.flops += sum(map(self._flops.__getitem__, charges))
        elif meter is not None:
            for price in charges:
                meter.charge(*program.prices[price])

    def halt(self) -> None:
        """Write down how far the ranks inside have come, and for whom they wait: the run is over."""
        for number, rank in self._inside.items():
            self._write(number, rank)
            awaited = self._ranks[number]["awaited"]
            if awaited >= 0:
                rank.source = int(self._program.messages[awaited]["src"])
                rank.source_world, rank.blocked_since = self._members[rank.source], rank.now
                rank.mailbox.channel((self._group, COLLECTIVE)).receiver = rank
