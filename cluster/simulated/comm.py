"""The Comm contract on the simulated cluster; see `cluster/comm.py` for what each method promises."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from cluster import collectives
from cluster.collectives import COLLECTIVE
from cluster.comm import MOST_TAG, Message, Op, check_tag, flat, nbytes, one_for_each, scale_of, snapshot, vector
from cluster.shared_memory import Guard, check_guard
from cluster.simulated import compiled_collectives
from cluster.simulated.actor import Actor
from cluster.simulated.fused_collectives import FusedAllReduce, Participant, rendezvous
from cluster.simulated.handles import BackgroundAllReduce, InPlace, PendingSum, SimulatedReceive, SimulatedSend
from cluster.simulated.mailbox import Delivery, delivery
from cluster.simulated.memory import Memory, SimulatedVector
from cluster.simulated.rank import Rank
from tracing import COMMUNICATE

if TYPE_CHECKING:
    from cluster.simulated.mailbox import Channel
    from cluster.simulated.ports import Route

POLL = 1e-6  # s that a poll takes, so that time passes in a loop of polls
FLOATS = frozenset(map(np.dtype, "fd"))  # `send` copies these in a tenth of the time that nbytes and snapshot take


class SimulatedComm:
    """The communicator of `owner` in the group of world ranks `members`.

    `actor` sends and receives: it is `owner` itself, or an actor in the background of `owner`.
    """

    def __init__(self, owner: Rank, actor: Actor, group: Hashable, members: list[int]):
        self.owner, self._actor, self._sim, self._queue = owner, actor, owner.sim, owner.sim.queue
        self.group, self.members = group, members
        self.rank, self.size, self.device = members.index(owner.number), len(members), owner.sim.place
        per_node = owner.sim.network.per_node
        self.nodes = members if per_node == 1 else [member // per_node for member in members]
        self.event_log = owner.event_log
        self._routes: dict[int, Route] = {}
        self._posted: dict[tuple, deque] = {}
        self._failed: list[Exception] = []  # the first error of a collective, after which stray messages block others
        self._calls = self._entered = 0  # collectives so far, and compiled ones; the same numbers on every rank
        self._overlaps = False  # whether this group has started an all-reduce without waiting for it at once

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        rank, actor, queue = self.owner, self._actor, self._queue
        if type(tag) is not int or not 0 <= tag <= MOST_TAG:  # a call per message would cost too much time
            check_tag(tag, actor.collective)
        if actor.interruptible:
            actor.interrupt()
        if type(x) is ndarray and x.dtype in FLOATS:
            size, x = x.nbytes, x.copy()
        elif type(x) is float:
            size = 8
        else:
            size, x = nbytes(x), snapshot(x)
        route = self._routes.get(dst) or self._route(dst)
        if route.overhead:
            actor.communicate(route.overhead)
        rank.in_flight += 1
        if rank.in_flight > rank.window:
            queue.sync(actor)
        now = actor.now
        leaves = route.out.carry(now, size * route.beta)
        queue.push(leaves + route.latency, delivery(route, (self.group, tag), size, now, x))
        if route.per_byte:
            actor.communicate(size * route.per_byte)

    def _send_by_priority(self, priority: int, x: Message, dst: int, tag: int) -> None:
        """Send as soon as the port is free and no message with a lower priority number waits for it."""
        rank, actor, queue = self.owner, self._actor, self._queue
        size, x = nbytes(x), snapshot(x)
        route = self._routes.get(dst) or self._route(dst)
        if route.overhead:
            actor.communicate(route.overhead)
        rank.in_flight += 1
        queue.sync(actor)
        message = delivery(route, (self.group, tag), size, actor.now, x)

        def leave() -> None:
            route.out.free = queue.now + size * route.beta
            queue.push(queue.now + route.latency, message)

        self._sim.ports.priority_queue(route.out).put(actor.now, priority, leave)
        if route.per_byte:
            actor.communicate(size * route.per_byte)

    def isend(self, x: Message, dst: int, tag: int = 0) -> SimulatedSend:
        self.send(x, dst, tag)
        return SimulatedSend(self, self._routes[dst].out.free)

    def recv(self, src: int, tag: int = 0) -> Message:
        if type(tag) is not int or not 0 <= tag <= MOST_TAG:
            check_tag(tag, self._actor.collective)
        if self._posted:
            return self.irecv(src, tag).wait()
        return self._take(src, tag)

    def irecv(self, src: int, tag: int = 0) -> SimulatedReceive:
        check_tag(tag, self._actor.collective)
        self._check(src)
        return SimulatedReceive(self, src, tag)

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        check_tag(tag)
        rank, actor, queue = self.owner, self._actor, self._queue
        channel = rank.mailbox.channel((self.group, tag))
        queue.sync(actor)
        while True:
            if self._posted:
                self._fill(channel, tag)
            message = channel.earliest()
            if message is not None and not message.arrived > max(actor.now, queue.now):  # never wait for NaN
                channel.messages.remove(message)
                return message.route.src, self._finish_receive(message)
            for lost in self._unreported_losses(tag):
                rank.reported_losses.add((self.group, tag, lost))
                actor.wait_until(queue.now)
                return lost, None
            if message is not None:  # its last byte is on its way
                queue.push(message.arrived, actor)
                queue.wait(actor)
                continue
            rank.mailbox.wait(channel, actor)
            if actor.interruptible:
                actor.interrupt()

    def poll(self, tag: int = 0) -> list[int]:
        check_tag(tag)
        actor = self._actor
        self._queue.sync(actor)
        actor.communicate(POLL)
        if self._posted:
            self._fill(self.owner.mailbox.channel((self.group, tag)), tag)
        return self.owner.mailbox.ready_senders((self.group, tag), actor.now) + self._unreported_losses(tag)

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        scale = scale_of(op, x, self.size)
        line = flat(x)
        if self._failed:
            raise self._failed[0]
        self._calls += 1
        self._overlaps = self._overlaps or async_op
        algorithm = self._sim.all_reduce(self._overlaps)
        work: Participant | BackgroundAllReduce
        if algorithm is None:
            work = FusedAllReduce.join(self, line, scale, priority)
        elif async_op:
            work = self._in_background(algorithm, line, scale, priority)
        else:
            self._run_collective("all-reduce", algorithm, line, scale)
            return x
        if async_op:
            return InPlace(work, x)
        work.wait()
        return x

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        scale = scale_of(op, x, self.size)
        return self._run_collective("reduce-scatter", collectives.reduce_scatter, vector(x), scale)

    def all_gather(self, x: Message) -> list[Message]:
        return self._run_collective("all-gather", collectives.all_gather, snapshot(x))

    def all_to_all(self, parts: Sequence[Message]) -> list[Message]:
        return self._run_collective("all-to-all", collectives.all_to_all, one_for_each(parts, self.size))

    def broadcast(self, x: Message, src: int = 0) -> Message:
        self._check(src)
        return self._run_collective("broadcast", collectives.broadcast, snapshot(x), src)

    def barrier(self) -> None:
        self._run_collective("barrier", collectives.barrier)

    def split(self, color: int | None) -> SimulatedComm | None:
        def groups(colors: list) -> dict:
            return {c: (self._sim.group_ids(), [m for m, own in zip(self.members, colors, strict=True) if own == c])
                    for c in dict.fromkeys(colors) if c is not None}  # fmt: skip

        nbytes(color)
        made = rendezvous(self, "split", color, groups)
        return None if color is None else type(self)(self.owner, self._actor, *made[color])

    def shared(self, like: np.ndarray, guard: Guard = "none") -> SimulatedVector:
        guard = check_guard(guard, like)
        memory = rendezvous(self, "shared", like, lambda vectors: Memory(vectors[0]))
        return SimulatedVector(self, memory, guard)

    def route(self, dst: int) -> Route:
        """Return the route to rank `dst` of the group. Raise ValueError if there is no such rank."""
        return self._routes.get(dst) or self._route(dst)

    def _route(self, dst: int) -> Route:
        """Return a new route to rank `dst`, and store it, so that `send` makes this call only once per receiver."""
        self._check(dst)
        route = self._sim.ports.route(self.owner, self.rank, self._sim.ranks[self.members[dst]])
        self._routes[dst] = route
        return route

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank}; ranks are 0 to {self.size - 1}.")

    def _fill(self, channel: Channel, tag: int) -> None:
        """Give each message of the channel to the receive that was posted for it, if there is one."""
        for message in list(channel.messages):
            receives = self._posted.get((message.route.src, tag), ())
            if receive := next((one for one in receives if one.message is None), None):
                receive.message = message
                channel.messages.remove(message)

    def _take(self, src: int, tag: int) -> Message:
        """Wait for the next message from `src` and return its payload. Raise RankLost if `src` is lost."""
        rank, actor = self.owner, self._actor
        if actor.interruptible:
            actor.interrupt()
        message = rank.mailbox.get((self.group, tag), actor, src, self.members)
        if message is None:
            actor.receive(self._queue.now, self._queue.now)  # the report of the loss
        if actor.interruptible:
            actor.interrupt()
        if message is None:
            lost = rank.mailbox.lost[self.members[src]]
            raise lost.loss(f"rank {rank.number} waits for a message from it (tag {tag})")
        return self._finish_receive(message)

    def _finish_receive(self, message: Delivery) -> Message:
        """Advance until the message has arrived and this rank's processor has moved it. Return its payload."""
        actor, taken = self._actor, message.arrived
        if message.route.per_byte:
            taken = max(taken, actor.now + message.nbytes * message.route.per_byte)
        actor.receive(message.sent, taken)
        return message.payload

    def _unreported_losses(self, tag: int) -> list[int]:
        """Return the lost ranks of this group that recv_any has not yet returned for this tag, but could return now."""
        rank = self.owner
        if not rank.mailbox.lost:
            return []
        last = max(self._actor.now, self._queue.now)
        coming = {m.route.src for m in rank.mailbox.channel((self.group, tag)).messages if m.arrived > last}
        lost = [r for r, world in enumerate(self.members) if world in rank.mailbox.lost and r not in coming]
        return [r for r in lost if (self.group, tag, r) not in rank.reported_losses]

    def _run_collective(self, name: str, algorithm: Callable, *args: Any) -> Any:
        """Run a collective of `cluster.collectives`, message by message, in this rank's time. Return its result.

        The compiled loop runs it if possible. If a collective of the group has failed before, raise its error.
        """
        if self._failed:
            raise self._failed[0]
        rank, event_log = self.owner, self.event_log
        outer = rank.collective, event_log.busy
        rank.collective, event_log.busy, rank.recorded = name, True, rank.now  # kernels belong to it
        try:
            if compiled_collectives.can_run(self, algorithm, args):
                return compiled_collectives.run(self, algorithm, *args)
            return algorithm(self, *args)
        except Exception as error:
            self._failed.append(error)
            raise
        finally:
            rank.span(COMMUNICATE, rank.recorded, rank.now, name)
            rank.collective, event_log.busy = outer

    def _in_background(self, algorithm: Callable, x: np.ndarray, scale: float, priority: int) -> BackgroundAllReduce:
        """Return the handle of a new all-reduce that sends its messages in the background, while the rank continues."""
        rank = self.owner
        rank.window = 0  # the rank shares its port with its background
        actor = Actor(rank, self._actor.now)
        actor.collective = "all-reduce"
        comm = copy(self)
        comm._actor, comm._routes, comm._posted = actor, {}, {}
        if priority:
            comm.send = partial(comm._send_by_priority, priority)  # type: ignore[method-assign]  # of this copy alone
        work = BackgroundAllReduce(self, actor)
        tag = COLLECTIVE - self._calls  # a tag of its own, since several may be in progress

        def all_reduce(_: SimulatedComm) -> None:
            try:
                algorithm(comm, x, scale, tag)
            except Exception as error:
                work.error = work.error or error
                self._failed.append(error)
            work.finish()

        rank.background.append(actor)
        self._sim.spawn(actor, partial(rank.main, all_reduce, comm, actor))
        key, wanted = (self.group, "background", self._calls), (len(x), x.dtype, scale)
        pending = self._sim.pending.setdefault(key, PendingSum(self.size, wanted))
        if pending.join(self, wanted, work):
            del self._sim.pending[key]
        return work
