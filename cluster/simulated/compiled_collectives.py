"""Collectives executed by a compiled event loop (`compiled_events.py`) instead of by switching between ranks.

A rank that enters a collective blocks until the loop has performed all of its operations. Every message still passes
the same ports at the same times, and appears in the trace. The vectors are summed once for all ranks, when the first
rank finishes; by then every rank has entered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

import kernels
from cluster import collectives
from cluster.comm import COLLECTIVE, shares
from cluster.simulated.collective_program import record_program
from cluster.simulated.ring_recurrence import ring_sum
from kernels import METER, Meter, meter_kernels
from kernels.compiler import COMPILES

if TYPE_CHECKING:
    from cluster.faults import Faults
    from cluster.network import Network
    from cluster.simulated.comm import SimulatedComm
    from cluster.simulated.rank import Rank


def _sum(x: np.ndarray, total: np.ndarray, piece: slice) -> None:
    x[...] = total


def _piece(x: np.ndarray, total: np.ndarray, piece: slice) -> np.ndarray:
    return total[piece].copy()


def _nothing(x: None, total: None, piece: None) -> None:
    return None


COMPILED: dict[Callable, Callable[..., Any]] = {
    collectives.ring: _sum,
    collectives.reduce_scatter: _piece,
    collectives.barrier: _nothing,
}
"""For each collective, the function that computes a rank's result from its vector and the sum over the ring."""


def can_compile(network: Network, faults: Faults) -> bool:
    """Return whether a compiled loop can simulate the collectives of this run.

    It cannot handle ranks that crash or pause, nor links with a CPU cost per byte. It records a rank's messages in the
    order of sending, so with several ranks per node it needs a positive overhead: otherwise two messages can be sent at
    the same time, and the trace orders such messages by delivery.
    """
    overheads = network.within.overhead, network.between.overhead
    if not COMPILES or network.within.per_byte or network.between.per_byte:
        return False
    return not faults.crash and not faults.pause and (network.per_node == 1 or min(overheads) > 0)


def can_run(comm: SimulatedComm, algorithm: Callable, args: tuple) -> bool:
    """Return whether the compiled loop can run this collective."""
    return algorithm in COMPILED and comm._sim.compiles and (not args or type(args[0]) is np.ndarray)


def run(comm: SimulatedComm, algorithm: Callable, x: np.ndarray | None = None, scale: float = 1.0) -> Any:
    """Take part in a collective as the rank of `comm`. Return the result of `algorithm(comm, x, scale)`.

    Raise ValueError if the ranks of the group are not in the same collective.
    """
    sim = comm._sim
    key = (comm.group, "compiled", comm._entered + 1)
    wanted = algorithm, comm.size, None if x is None else len(x), None if x is None else x.dtype.str, scale
    work = sim.pending.get(key)
    if work is None:
        work = sim.pending[key] = CompiledCollective(comm, *wanted)
        sim.in_progress.append(work)
    if wanted != work.wanted:
        ours, theirs = (
            f"{what[0].__name__} of {what[2]} numbers ({what[3]}){' to a mean' * (what[4] != 1.0)}"
            for what in (wanted, work.wanted)
        )
        raise ValueError(
            f"mismatched collective: rank {comm.rank} is in {ours}, but others of its group are in {theirs}; call the "
            "same collective on every rank."
        )
    comm._entered += 1
    work.expected -= 1
    if not work.expected:
        del sim.pending[key]
    return work.take_part(comm.rank, comm.owner, x)


class CompiledCollective:
    def __init__(self, comm: SimulatedComm, *wanted: Any):
        self.wanted = wanted
        algorithm, size, length, dtype, self._scale = wanted
        self.expected = size
        self._inside: dict[int, Rank] = {}
        self._sim, self._group, self._members = comm._sim, comm.group, comm.members
        self._program = program = record_program(algorithm, size, length, dtype, self._scale != 1.0)
        self._result = COMPILED[algorithm]
        self._total: np.ndarray | None = None
        self._pieces: list[Any] = [None] * size if length is None else shares(length, size)
        self._vectors: list[Any] = [None] * size
        self._meters: list[Meter | None] = [None] * size
        device = self._sim.device
        self._seconds = np.array([device.seconds(flops, nbytes) for _, flops, nbytes in program.prices])
        self._flops = [flops for _, flops, _ in program.prices]

        loop, members = self._sim.compiled, np.array(self._members)
        self._piece = piece = loop.reserve(program, self._members)
        loop.messages["dst"][piece] = loop.rows["dst"][piece] = members[program.receivers]
        loop.rows["bytes"][piece] = program.nbytes
        loop.rows["tag"][piece], loop.rows["collective"][piece], loop.rows["arrived"][piece] = COLLECTIVE, True, np.nan
        self._rows = loop.rows[piece].copy()  # the trace keeps these when the loop uses its own again

    def take_part(self, number: int, rank: Rank, x: np.ndarray | None) -> Any:
        """Perform the operations of rank `number` of the group. Return its result."""
        self._vectors[number], self._meters[number], self._inside[number] = x, METER.get(), rank
        factor = (rank.slowness() if rank.jitter else rank.slow) if self._meters[number] is rank else 0.0
        self._sim.compiled.enter(rank, self._program, number, self._piece.start, self._seconds * factor)
        if x is not None and self._total is None:
            self._add_up()
        self._write(number)
        if not self.expected and not self._inside:
            self._close()
        return self._result(x, self._total, self._pieces[number])

    def _add_up(self) -> None:
        """Sum the vectors in the ring's order, and release them."""
        with meter_kernels(None):
            self._total = ring_sum(self._vectors, self._pieces)
            if self._scale != 1.0:
                kernels.scale(self._total, self._scale)
        self._vectors = []

    def _write(self, number: int) -> None:
        """Update a rank and its event log with what it has done in the collective."""
        rank, program, loop = self._inside.pop(number), self._program, self._sim.compiled
        event_log, state = rank.event_log, loop.ranks[rank.number]
        name, step, spans = rank.collective, event_log.step, loop.spans(rank.number)
        for first in spans[:1]:
            rank.span(*first, name)  # which may extend the rank's last span
        event_log.spans.extend((kind, start, end, step, name) for kind, start, end in spans[1:])
        rank.now, rank.recorded = float(state["now"]), float(state["recorded"])
        if len(self._rows):
            event_log.messages.add(self._rows[program.sends[number] : program.sends[number + 1]])
        meter, charges = self._meters[number], loop.charged_prices(rank.number, program, number)
        if meter is rank:
            event_log.flops += sum(map(self._flops.__getitem__, charges))
        elif meter is not None:
            for price in charges:
                meter.charge(*program.prices[price])

    def _close(self) -> None:
        """Copy the times of all messages to the trace, and release the loop's rows."""
        self._rows[:] = self._sim.compiled.rows[self._piece]
        self._sim.compiled.release(self._piece)
        self._sim.in_progress.remove(self)

    def halt(self) -> None:
        """At the end of the run, record how far the ranks in this collective got, and whom they wait for."""
        for number, rank in list(self._inside.items()):
            self._write(number)
            awaited = self._sim.compiled.ranks[rank.number]["awaited"]
            if awaited >= 0:
                rank.source = int(self._program.senders[awaited - self._piece.start])
                rank.source_world, rank.blocked_since = self._members[rank.source], rank.now
                rank.mailbox.channel((self._group, COLLECTIVE)).receiver = rank
        self._close()
