"""Handles of the simulated cluster: operations in progress, for which a rank can `wait`."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

from cluster.comm import Message
from cluster.simulated.actor import Actor
from cluster.simulated.fused_collectives import mismatch
from tracing import COMMUNICATE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.comm import SimulatedComm
    from cluster.simulated.mailbox import Delivery


class SimulatedSend:
    """A send. It is done at `left`, when the last byte has passed the sender's port."""

    def __init__(self, comm: SimulatedComm, left: float):
        self._comm, self._left = comm, left

    def wait(self) -> None:
        self._comm._actor.wait_until(self._left)


class SimulatedReceive:
    """A posted receive. Receives from the same rank with the same tag complete in the order they were posted."""

    def __init__(self, comm: SimulatedComm, src: int, tag: int):
        self._comm, self._src, self._tag = comm, src, tag
        self._done, self._x = False, None
        self.message: Delivery | None = None  # set if another receive could otherwise take it
        self._posted = comm._posted.setdefault((src, tag), deque())
        self._posted.append(self)

    def has_arrived(self) -> bool:
        """Return whether wait() would return at once. Call `comm.poll(tag)` first: it assigns arrived messages."""
        arrived = self.message.arrived if self.message else math.inf
        return self._done or arrived <= self._comm._actor.now

    def wait(self) -> Message:
        while not self._done:
            first, comm = self._posted[0], self._comm
            first._x = comm._finish_receive(first.message) if first.message else comm._take(self._src, self._tag)
            first._done, first.message = True, None
            self._posted.popleft()  # only now, so that a failed wait can be repeated
        return self._x


class BackgroundAllReduce:
    """An all-reduce, performed message by message by an actor in the background of its rank."""

    def __init__(self, comm: SimulatedComm, background: Actor):
        self._comm, self._background, self._done = comm, background, False
        self._waiter: Actor | None = None
        self.error: Exception | None = None  # raised by wait()

    def refuse(self, error: ValueError, at: float) -> None:
        """Make wait() raise `error`, and end the background actor at time `at`."""
        self.error = error
        self._comm._failed.append(error)
        self._comm._sim.queue.call(at, self._end)

    def _end(self) -> None:
        if not self._done:
            self._background.strand.throw(self._comm._sim.strand_type.GreenletExit)
            self._background.now = self._comm._sim.queue.now  # it may have run ahead
            self.finish()

    def finish(self) -> None:
        """Mark the sum as done and wake the actor that waits for it, if there is one. The background actor calls this
        when it has the sum, or an error.
        """
        self._done = True
        self._background.rank.background.remove(self._background)
        if self._waiter:
            self._comm._sim.queue.push(self._background.now, self._waiter)

    def wait(self) -> None:
        actor = self._comm._actor
        actor.collective = "all-reduce"
        if not self._done:
            self._waiter, actor.blocked_since = actor, actor.now
            self._comm._sim.queue.wait(actor)
        self._advance(actor)
        actor.collective = ""
        if self.error:
            raise self.error

    def _advance(self, actor: Actor) -> None:
        """Advance to the end of the sum; record waiting where the background actor waited, else communication."""
        rank, now, end = actor.rank, actor.now, self._background.now
        for wait in [*self._background.waits, (end, end)]:
            begins, ends = (max(now, min(time, end)) for time in wait)
            rank.span(COMMUNICATE, now, begins, "all-reduce")
            rank.span(WAIT, begins, ends, "all-reduce")
            now = ends
        actor.now = now


class PendingSum:
    """A sum that a group forms in the background: the first rank's (length, dtype, scale), and the ranks' parts.

    It detects ranks that want different sums. Messages alone may not reveal them, and a rank could wait forever.
    """

    def __init__(self, size: int, wanted: tuple):
        self._missing, self._wanted = size, wanted
        self._parts: list[BackgroundAllReduce] = []
        self._error: ValueError | None = None

    def join(self, comm: SimulatedComm, wanted: tuple, part: BackgroundAllReduce) -> bool:
        """Add the rank of `comm`. Return whether all ranks have joined.

        If the rank wants a different sum, make wait() raise an error on all ranks.
        """
        self._parts.append(part)
        self._missing -= 1
        if wanted != self._wanted and not self._error:
            self._error = mismatch(comm.rank, wanted, self._wanted)
            for one in self._parts:
                one.refuse(self._error, comm._actor.now)
        elif self._error:
            part.refuse(self._error, comm._actor.now)
        return not self._missing


class InPlace:
    """An all-reduce of `x`. wait() returns the reduced array."""

    def __init__(self, work: Any, x: np.ndarray):
        self._work, self._x = work, x

    def wait(self) -> np.ndarray:
        self._work.wait()
        return self._x
