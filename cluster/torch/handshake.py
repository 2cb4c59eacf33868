"""Messages that wait for their receiver, as in gloo and NCCL.

gloo has no eager messages: even a `dist.send` of one number blocks until the other rank receives. So two ranks that
both send first wait forever. `eager` is the size in bytes up to which a message leaves at once, as in MPI.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from cluster.comm import ClusterError
from cluster.simulated.mailbox import delivery
from cluster.torch.process import at_line
from tracing import COMMUNICATE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank
    from cluster.torch.group import Group


class Match:
    """Sends and receives of one group, receiver and tag that have not been matched yet, the earliest first."""

    def __init__(self):
        self._sends: list[tuple[int, Sending | None]] = []  # from whom; None for a message that has already left
        self._receives: list[tuple[int | None, float]] = []  # from whom (None: from any rank), since when in s

    def send(self, src: int, sending: Sending) -> None:
        for receive in self._receives:
            if receive[0] in (src, None):
                self._receives.remove(receive)
                sending.leave(receive[1])
                return
        if sending.is_eager:
            sending.leave()
        self._sends.append((src, None if sending.is_eager else sending))

    def receive(self, src: int | None, now: float) -> None:
        for send in self._sends:
            if src in (send[0], None):
                self._sends.remove(send)
                if send[1]:
                    send[1].leave(now)
                return
        self._receives.append((src, now))


class Sending:
    """A message being sent.

    `begins` is when both ranks are ready, `left` when its last byte has passed the sender's port, in s. Until `begins`
    one rank waits for the other; everything after that, including the handshake, is communication.
    """

    def __init__(self, group: Group, x: torch.Tensor, dst: int, tag: int):
        self._group, self._x, self._dst, self._tag = group, x, dst, tag
        self._rank = group.process.rank
        self._nbytes = x.numel() * x.element_size()
        self._route = group.comm.route(dst)
        self.is_eager = self._nbytes <= group.process.shared.eager
        self.left: float | None = None
        self.begins = 0.0
        self._parked = False
        if self._route.overhead:
            self._rank.communicate(self._route.overhead)
        self._ready = self._rank.now

    def leave(self, received: float | None = None) -> None:
        """Hand the message to the network. `received` is when its receive was posted, in s.

        The sender learns of the receive one latency later.
        """
        queue, route, rank = self._group.process.sim.queue, self._route, self._rank
        start = self._ready if received is None else max(self._ready, received + route.latency)
        self.begins = self._ready if received is None else max(self._ready, received)
        rank.in_flight += 1
        leaves = route.out.carry(start, self._nbytes * route.beta)
        key = self._group.comm.group, self._tag
        queue.push(leaves + route.latency, delivery(route, key, self._nbytes, self.begins, self._x))
        self.left = route.out.free
        if self._parked:
            queue.push(max(self.left, rank.now), rank)
        self._parked = False

    def wait(self) -> None:
        """Block until the message has left. Raise RankLost if its receiver is lost before that."""
        rank, process, queue = self._rank, self._group.process, self._group.process.sim.queue
        other, start = self._group.members[self._dst], self._rank.now
        if self.left is None and not self._lost():
            rank.collective, rank.awaited, rank.blocked_since = f"send{at_line(process)}", other, start
            self._parked, rank.summing = True, self  # the simulator calls its report() when a rank is lost
            try:
                queue.wait(rank)
            finally:
                rank.summing, rank.awaited = None, "the others"
        rank.collective = "send"
        rank.wait_until(queue.now if self.left is None else min(self.begins, self.left))
        rank.collective = ""
        if self.left is None:
            lost = self._lost()
            assert lost
            raise lost.loss(f"rank {rank.number} waits until it receives a message (tag {self._tag})")
        process.record_wait(other, "send", start, rank.now, self._ready)
        if self.left > rank.now:
            rank.span(COMMUNICATE, rank.now, self.left, "send")
            rank.now = self.left
        if rank.interruptible:
            rank.interrupt()

    def _lost(self) -> Rank | None:
        return self._rank.mailbox.lost.get(self._group.members[self._dst])

    def report(self) -> None:
        """Wake this rank if its receiver is lost."""
        if self._parked and self._lost():
            self._parked = False
            self._group.process.sim.queue.push(self._group.process.sim.queue.now, self._rank)


class Receiving:
    """A receive in progress, from one rank or from any (`src` is None). `source` is the sender, once it is known."""

    def __init__(self, group: Group, x: torch.Tensor, src: int | None, tag: int):
        self._group, self._x, self._tag = group, x, tag
        self.source = src
        self._receive = None if src is None else group.comm.irecv(src, tag)

    def has_arrived(self) -> bool:
        arrived = self._group.comm.poll(self._tag)
        return self._receive.has_arrived() if self._receive else bool(arrived)

    def take(self) -> None:
        """Block until the message has arrived, and copy it. Raise ClusterError if it does not fit, and RankLost if its
        sender is lost.
        """
        group, process = self._group, self._group.process
        rank, start = process.rank, process.rank.now
        if self._receive:
            x: Any = self._receive.wait()
        else:
            self.source, x = group.comm.recv_any(self._tag)
        assert self.source is not None
        sender = group.members[self.source]
        if x is None:
            raise rank.mailbox.lost[sender].loss(f"rank {rank.number} waits for any message")
        for kind, _, end, _, _ in rank.event_log.spans[-2:]:
            if kind == WAIT:
                process.record_wait(sender, "receive", start, end, start)
        if x.numel() != self._x.numel() or x.dtype != self._x.dtype:
            mine, theirs = (
                f"{one.numel():,} numbers ({str(one.dtype).removeprefix('torch.')})" for one in (self._x, x)
            )
            raise ClusterError(
                f"rank {rank.number} receives {mine}{at_line(process)}, but rank {sender} has sent {theirs} (tag "
                f"{self._tag}); give the receive a tensor of the message's size and type."
            )
        with process.pricer.pause(), torch.no_grad():
            self._x.detach().copy_(x.view_as(self._x))
