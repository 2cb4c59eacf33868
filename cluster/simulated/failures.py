"""Failures in the simulated cluster: crashes, how the other ranks learn of them, and restarts.

A crash stops a rank wherever it is; messages that have left it still arrive. All other ranks learn of the loss after
the latency of the network. A rank that will restart is not reported as lost; messages sent while it is down are
dropped.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from cluster.comm import Deadlock
from cluster.simulated.mailbox import Delivery
from cluster.simulated.rank import Rank
from cluster.waits import describe_deadlock
from tracing import HELD, IDLE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.simulation import Simulation


class Failures:
    """The crashes and restarts of one run."""

    def __init__(self, sim: Simulation):
        self._sim = sim

    def schedule(self, rank: Rank) -> None:
        if rank.crash_time < math.inf:
            self._sim.queue.call(rank.crash_time, self._crash, rank)

    def _crash(self, rank: Rank) -> None:
        """Stop the rank, and schedule either its restart or the report of its loss to every other rank."""
        if rank.done:
            return
        stop(rank)
        queue, latency = self._sim.queue, self._sim.network.between.latency
        if rank.restart_time < math.inf:
            queue.call(rank.restart_time, self._restart, rank)
            return
        learned = rank.crash_time + latency
        last = {other.number: learned for other in self._sim.ranks if other is not rank}
        for time, message in queue.waiting(Delivery):  # its messages arrive before the report
            number = message.route.receiver.number
            if message.route.sender is rank and message.sent <= rank.lost_at and number in last:
                last[number] = max(time, last[number])
        for number, time in last.items():
            queue.call(time, self._report, number, rank)

    def _report(self, number: int, lost: Rank) -> None:
        """Report the loss to the current incarnation of rank `number`."""
        rank = self._sim.ranks[number]
        rank.mailbox.report(lost)
        if rank.summing:
            rank.summing.report()

    def _restart(self, previous: Rank) -> None:
        """Restart the program of a lost rank, without its memory, on the same event log."""
        sim, number = self._sim, previous.number
        rank = sim.ranks[number] = Rank(sim, number, sim.faults.after_restart(number), previous)
        rank.event_log.spans.append((IDLE, previous.lost_at, rank.born, previous.lost_step, "lost"))
        for kind in HELD:
            rank.event_log.hold(kind, 0)
        sim.start(rank)

    def check_stuck(self) -> None:
        """Raise RankLost or Deadlock if a rank still waits after the event queue has run empty, or if no rank
        is left.
        """
        ranks = self._sim.ranks
        stuck = [rank for rank in ranks if not rank.done and rank.lost_at == math.inf]
        lost = [rank for rank in ranks if rank.lost_at < math.inf]
        if stuck and lost:
            raise lost[0].loss(f"rank {stuck[0].number} cannot continue without it: {stuck[0].pending_waits()[0]}")
        if len(lost) == len(ranks):
            raise max(lost, key=lambda rank: rank.lost_at).loss("no rank is left")
        if stuck:
            waits = [wait for rank in stuck for wait in rank.pending_waits()]
            restarts = [line for rank in ranks for line in describe_restart(rank)]
            raise Deadlock(describe_deadlock(waits, restarts), waits)

    def notes(self) -> list[str]:
        """Return a sentence for each restart and each loss. The cluster cannot tell whether the others continued."""
        lines = []
        for rank in self._sim.ranks:
            lines += describe_restart(rank)
            if rank.lost_at < math.inf:
                lines.append(str(rank.loss()))
        return lines

    def close(self) -> None:
        """Record lost ranks as idle, and ranks that still wait as waiting, until the end of the run."""
        for rank in self._sim.ranks:
            if rank.lost_at == math.inf and not rank.done and self._sim.queue.now > rank.now:
                rank.span(WAIT, rank.now, self._sim.queue.now, rank.collective or "receive")
            if rank.lost_at < math.inf:
                end = max(self._sim.queue.now, rank.crash_time)
                rank.event_log.spans.append((IDLE, rank.lost_at, end, rank.lost_step, "lost"))


def stop(rank: Rank) -> None:
    """End the rank's strands at the time of its crash, and drop the spans that they recorded after it."""
    rank.lost_at, rank.lost_step = rank.crash_time, rank.event_log.step
    blocked = rank.collective or "receive"
    for actor in (rank, *rank.background):
        actor.strand.throw(rank.sim.strand_type.GreenletExit)
    rank.span(WAIT, rank.now, rank.lost_at, blocked)
    rank.event_log.spans[:] = [
        (kind, start, min(end, rank.lost_at), step, label)
        for kind, start, end, step, label in rank.event_log.spans
        if start < rank.lost_at
    ]


def describe_restart(rank: Rank) -> list[str]:
    """Return a list with a sentence about this rank's restart, empty if it was not restarted."""
    return [str(rank.previous.loss(f"it restarted at {rank.born:.4g} s without its memory"))] if rank.previous else []
