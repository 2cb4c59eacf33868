"""One run of a program on the simulated cluster, from the start of the first rank to the last event."""

import gc
import math
from collections.abc import Callable
from functools import partial
from itertools import count
from time import monotonic  # the real clock, even where a program's `time` module shows the virtual one
from typing import Any

from cluster.collectives import ALL_REDUCE, check_name
from cluster.comm import Cancelled, ClusterError
from cluster.devices import Device
from cluster.event_log import Outcome
from cluster.faults import Faults
from cluster.network import Network
from cluster.simulated.actor import Actor
from cluster.simulated.comm import SimulatedComm
from cluster.simulated.compiled_collectives import CompiledCollective, can_compile
from cluster.simulated.compiled_loop import CompiledLoop
from cluster.simulated.event_queue import EventQueue
from cluster.simulated.failures import Failures
from cluster.simulated.ports import Ports
from cluster.simulated.rank import Rank
from cluster.simulated.restart import RestartableComm
from cluster.strands import FASTEST

AT_ONCE = "fast", "stream"  # all-reduces that are computed once for all ranks
PROGRESS = 0.2  # s of real time between two calls of on_progress
OFTEN = 8  # factor by which these calls are more frequent until there is a loss


class Simulation:
    """The event queue, ports, ranks and failures of one run, its progress and its error."""

    def __init__(
        self,
        size: int,
        network: Network,
        device: Device,
        faults: Faults,
        collective: str,
        on_progress: Callable | None = None,
        stop: Any = None,
        place: str = "cpu",
        strand: Any = FASTEST,
    ):
        self.network, self.device, self.faults, self.place = network, device, faults, place
        self._collective = check_name(collective, AT_ONCE)
        self.strand_type = strand
        self.queue = EventQueue(self.tick, strand)
        self.ports = Ports(self.queue, network, size)
        self.ranks = [Rank(self, number, faults) for number in range(size)]
        self._everybody = list(range(size))  # one list for all ranks: a thousand lists would take a tenth of a second
        self.failures = Failures(self)
        self.pending: dict[tuple, Any] = {}  # operations of a group that some of its ranks have not joined yet
        self.compiles = can_compile(network, faults)
        self.compiled = CompiledLoop(self.queue, self.ports, size, self.tick)
        self.in_progress: list[CompiledCollective] = []
        self.group_ids = count(1).__next__
        self._comm_type = RestartableComm if faults.back else SimulatedComm
        self._error: Exception | None = None
        self._on_progress, self._due = on_progress, monotonic() + PROGRESS / OFTEN
        self._cancelled = getattr(stop, "is_set", stop)

    def run(self, program: Callable[[Any], Any]) -> Outcome:
        """Run `program(comm)` on every rank until no event is left. Return the outcome."""
        self._program = program
        for rank in self.ranks:
            self.start(rank)
            self.failures.schedule(rank)
        gc_was_on = gc.isenabled()
        gc.disable()  # event logs have many rows but no cycles, and traversing them would take a tenth of the time
        try:
            self.queue.run()
            for work in list(self.in_progress):
                work.halt()
            if self._error is None:
                self.failures.check_stuck()
        except ClusterError as error:
            self.fail(error)
        finally:
            for actor in (actor for rank in self.ranks for actor in (rank, *rank.background)):
                actor.strand.throw(self.strand_type.GreenletExit)
            if gc_was_on:
                gc.enable()
        self.failures.close()
        notes = [] if self._error else [*self.failures.notes(), *self._unread()]
        ranks = self.ranks
        return Outcome([rank.result for rank in ranks], [rank.event_log for rank in ranks], self._error, tuple(notes))

    def start(self, rank: Rank) -> None:
        """Start the program on `rank` at the rank's current time."""
        comm = self._comm_type(rank, rank, 0, self._everybody)
        self.spawn(rank, partial(rank.main, self._program, comm))

    def spawn(self, actor: Actor, main: Callable[[], None]) -> None:
        """Run `main` as the strand of `actor`, starting at the actor's current time."""
        actor.strand = self.strand_type(main, parent=self.queue.hub.strand)
        self.queue.call(actor.now, actor.strand.switch)  # from the hub, whose stack is the shallowest

    def all_reduce(self, overlaps: bool) -> Callable | None:
        """Return the all-reduce that sends messages, or None if the sum is computed once for all ranks.

        "fast" sends messages, as a ring, for a group that `overlaps`, i.e. whose sums share ports with each other. On a
        GPU, every all-reduce sends messages. A computer that sums in memory sends none.
        """
        if self._collective not in AT_ONCE:
            return ALL_REDUCE[self._collective]
        overlaps = overlaps and self._collective == "fast" and not self.network.sum
        return ALL_REDUCE["ring"] if overlaps or self.place != "cpu" else None

    def fail(self, error: Exception) -> None:
        """End the run with `error`, unless it has already failed."""
        self._error = self._error or error
        self.queue.stop()

    def tick(self) -> None:
        """Report progress every PROGRESS seconds of real time, and more often until there is a loss to report.

        Raise Cancelled if the run should stop.
        """
        if monotonic() < self._due:
            return
        logs = [rank.event_log for rank in self.ranks]
        if self._on_progress:
            self._on_progress(logs, max(rank.now for rank in self.ranks))
        self._due = monotonic() + (PROGRESS if any(log.losses for log in logs) else PROGRESS / OFTEN)
        if self._cancelled and self._cancelled():
            raise Cancelled(f"cancelled at t = {self.queue.now:.4g} s")

    def _unread(self) -> list[str]:
        alive = [rank for rank in self.ranks if rank.lost_at == math.inf]
        return [line for rank in alive for line in rank.mailbox.unread(rank.number)]
