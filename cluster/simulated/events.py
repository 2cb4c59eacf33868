"""The heap: what is still to come, in the order of time.

Events are ordered by (time, serial), so ties are decided the same way every time and a run is a pure function of
what it was given. A rank may run ahead of the heap, since nothing that others do can change its past; it comes back
in order (`sync`) only where order matters: receiving from anybody, looking who has come, sharing memory or a port.
Whoever has to wait works off the heap until somebody can go on, and switches straight to that rank.

A message of n bytes sent at time t over a link with latency a and 1/b bytes per second:

    leaves    d = max(t, sender's port free)                      the port is busy until d + n b
    arrives   r = max(d + a, receiver's port free) + n b          alone on the link: a + n b later
"""

from __future__ import annotations

import gc
import math
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from cluster.collectives import known
from cluster.comm import Cancelled, ClusterError, Deadlock
from cluster.event_log import Outcome
from cluster.simulated.comm import SimulatedComm
from cluster.simulated.queue import Queue
from cluster.simulated.rank import Actor, Rank
from cluster.simulated.restart import RestartableComm
from tracing import HELD, IDLE

PROGRESS = 0.2  # s of real time between two calls of on_progress; the first comes after a quarter of it


class Simulation:
    """One run: the heap, the ports, and the ranks."""

    def __init__(self, size, network, device, faults, collective, on_progress=None, stop=None):
        self.network, self.device, self.collective = network, device, known(collective)
        self.heap: list[tuple] = []
        self.serial = count().__next__
        self.group_ids = count(1).__next__
        self.meetings: dict[tuple, Any] = {}
        self._queues: dict[tuple[int, ...], Queue] = {}
        self.now, self._handled = 0.0, 0
        # one port each way per node, then one each way per rank for messages inside a node
        self.nodes = -(-size // network.per_node)
        self.out_free = [0.0] * (self.nodes + size)
        self.in_free = [0.0] * (self.nodes + size)
        self.ranks = [Rank(self, number, faults) for number in range(size)]
        self.faults = faults
        self.comm = RestartableComm if faults.back else SimulatedComm
        self.error: Exception | None = None
        self.notes: list[str] = []
        self.on_progress, self._due = on_progress, time.monotonic() + PROGRESS / 4
        self.stopped = getattr(stop, "is_set", stop)

    def run(self, program: Callable) -> Outcome:
        """Everything, from the first rank's first line to the last message."""
        self.hub, self.program, self.world = getcurrent(), program, list(range(len(self.ranks)))
        for rank in self.ranks:
            self._begin(rank)
            if rank.crash < math.inf:
                self.at(rank.crash, self._lose, rank)
        gc_was_on = gc.isenabled()
        gc.disable()  # rows of event logs are many and never cyclic: looking through them takes a tenth of the time
        try:
            self.wait()
            self._check_stuck()
        except ClusterError as error:
            self.fail(error)
        finally:
            for actor in (actor for rank in self.ranks for actor in (rank, *rank.helpers)):
                actor.greenlet.throw(GreenletExit)
            if gc_was_on:
                gc.enable()
        self._close()
        return Outcome([r.result for r in self.ranks], [r.event_log for r in self.ranks], self.error, tuple(self.notes))

    def at(self, when: float, what: Callable, *args: Any) -> None:
        """Do `what(*args)` at time `when`."""
        heappush(self.heap, (when, self.serial(), what, args))

    def queue(self, *ports: int) -> Queue:
        """Where those wait who need these ports at once and said how urgent they are."""
        return self._queues.setdefault(ports, Queue(self, ports))

    def resume(self, when: float, actor: Actor) -> None:
        """Let a blocked actor go on at time `when`."""
        heappush(self.heap, (when, self.serial(), None, actor.greenlet))

    def wait(self, actor: Actor | None = None) -> None:
        """Work off the heap until `actor` can go on; for the hub (None), until there is nothing left."""
        heap, in_free = self.heap, self.in_free
        me = actor.greenlet if actor else None
        while heap and self.error is None:
            if len(heap[0]) == 4:
                when, _, what, ready = heap[0]
                if what is not None and me is not None:
                    break  # what is more than a message is for the hub
                heappop(heap)
                self.now = when
                if what is not None:
                    what(*ready)
                    continue
            else:
                first_byte, _, dst, port, busy, sender, src, key, nbytes, sent, x = heappop(heap)
                self.now = first_byte
                sender.in_flight -= 1
                if sent > sender.gone:
                    continue  # it had not left the rank when that was lost
                free = in_free[port]
                in_free[port] = arrived = (first_byte if first_byte > free else free) + busy
                sender.event_log.messages.append((dst.number, key[1], nbytes, sent, arrived, key[1] < 0))
                self._handled += 1
                if not self._handled & 255:
                    self.tick()
                waiting = dst.waiting.get(key)
                if waiting is None or waiting[1] != src:
                    box = dst.boxes.get(key)
                    if box is None:
                        box = dst.boxes[key] = deque()
                    box.append((arrived, src, x, sent))
                    if waiting is not None and waiting[1] is None:  # it takes anybody's: wake it when this one is whole
                        del dst.waiting[key]
                        self.resume(arrived, waiting[0])
                    continue
                del dst.waiting[key]
                waiting[0].inbox = (arrived, src, x, sent)
                ready = waiting[0].greenlet
            if ready is me:
                return
            ready.switch()
            if me is not None:
                return  # somebody switched back: this actor can go on
        if me is not None:
            self.hub.switch()

    def sync(self, actor: Actor) -> None:
        """Let everything happen that comes before `actor`'s time."""
        if self.heap and self.heap[0][0] <= actor.now:
            self.resume(actor.now, actor)
            self.wait(actor)

    def tick(self) -> None:
        """Tell the reader how far it has come, now and then; end the run if asked to."""
        if time.monotonic() < self._due:
            return
        if self.on_progress:
            self.on_progress([rank.event_log for rank in self.ranks], max(rank.now for rank in self.ranks))
        self._due = time.monotonic() + PROGRESS
        if self.stopped and self.stopped():
            raise Cancelled(f"cancelled at {self.now:.4g} s of the run's clock")

    def fail(self, error: Exception) -> None:
        """Keep the first error; the loop ends at the next event."""
        self.error = self.error or error

    def _begin(self, rank: Rank) -> None:
        comm = self.comm(rank, rank, 0, self.world)
        rank.greenlet = greenlet(partial(rank.main, self.program, comm))
        self.at(rank.born, rank.greenlet.switch)  # from the hub, whose stack is the lowest

    def _lose(self, rank: Rank) -> None:
        """A rank crashes: what has left it is on its way, then its silence is heard, unless it will be back."""
        if rank.done:
            return
        rank.lose()
        if rank.back < math.inf:
            self.at(rank.back, self._return, rank)
            return
        for other in self.ranks:
            if other is not rank:
                self.at(rank.crash + self.network.between.latency, self._tell, other.number, rank)

    def _tell(self, number: int, lost: Rank) -> None:
        self.ranks[number].hear_loss(lost)

    def _return(self, former: Rank) -> None:
        """A lost rank comes back: its program begins again, on the same event log."""
        rank = self.ranks[former.number] = Rank(self, former.number, self.faults, former)
        rank.event_log.spans.append((IDLE, former.idle_from, rank.born, former.lost_step, "lost"))
        for kind in HELD:
            rank.event_log.hold(kind, 0)
        self._begin(rank)

    def _check_stuck(self) -> None:
        stuck = [] if self.error else [rank for rank in self.ranks if not rank.done and rank.gone == math.inf]
        lost = [rank for rank in self.ranks if rank.gone < math.inf]
        if stuck and lost:
            raise lost[0].loss(f"rank {stuck[0].number} cannot go on without it: {stuck[0].complaints()[0]}")
        if stuck:
            complaints = [line for rank in stuck for line in rank.complaints()]
            more = [f"and {len(complaints) - 8} more"] if len(complaints) > 8 else []
            past = [line for rank in self.ranks for line in rank.past()]
            raise Deadlock(f"deadlock, nothing is on its way: {'; '.join([*complaints[:8], *more, *past])}.")

    def _close(self) -> None:
        for rank in self.ranks:
            if self.error is None:
                self.notes += rank.past()
            if rank.gone < math.inf:
                end = max(self.now, rank.crash)
                rank.event_log.spans.append((IDLE, rank.idle_from, end, rank.lost_step, "lost"))
                if self.error is None:
                    self.notes.append(f"{rank.loss('the others went on without it')}")
        if self.error is None:
            self.notes += [line for rank in self.ranks if rank.gone == math.inf for line in rank.unread()]
