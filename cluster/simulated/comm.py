"""The Comm contract on the simulated cluster; see `cluster/comm.py` for what each method promises."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from copy import copy
from functools import partial
from heapq import heappush
from typing import Any

import numpy as np
from greenlet import greenlet

from cluster import collectives
from cluster.collectives import ALL_REDUCE, COLLECTIVE
from cluster.comm import Guard, Message, Op, guarded, nbytes, snapshot
from cluster.network import Link
from cluster.simulated.meeting import Reduction, meet
from cluster.simulated.memory import Memory, SharedVector
from cluster.simulated.rank import Actor, Rank
from tracing import COMMUNICATE, WAIT

IN_FLIGHT = 64  # messages a rank may have under way before it waits for the clock: bounds the memory of snapshots
POLL = 1e-6  # s that a look into the mailbox takes, so that whoever looks again and again gets older


class SimulatedComm:
    """Rank `rank` of the group of world ranks `members`, acting as `actor`."""

    device = "cpu"

    def __init__(self, owner: Rank, actor: Actor, group: int, members: list[int]):
        self._rank, self._actor, self._sim = owner, actor, owner.sim
        self._group, self.members = group, members
        self.rank, self.size = members.index(owner.number), len(members)
        self.nodes = [member // owner.sim.network.per_node for member in members]
        self.event_log = owner.event_log
        self._routes: dict[int, tuple] = {}
        self._posted: dict[tuple, deque] = {}
        self._calls = 0  # collectives so far: every rank counts the same

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        sim, rank, actor = self._sim, self._rank, self._actor
        if rank.watched:
            rank.live()
        if type(x) is np.ndarray:
            size, x = x.nbytes, x.copy()
        else:
            size, x = nbytes(x), snapshot(x)
        receiver, out_port, in_port, latency, beta, overhead = self._routes.get(dst) or self._route(dst)
        if overhead:
            self._advance(overhead)
        rank.in_flight += 1
        if rank.crowded or rank.in_flight > IN_FLIGHT:
            sim.sync(actor)
        now, busy = actor.now, size * beta
        free = sim.out_free[out_port]
        leaves = now if now > free else free
        sim.out_free[out_port] = leaves + busy
        key = (self._group, tag)
        heappush(
            sim.heap,
            (leaves + latency, sim.serial(), receiver, in_port, busy, rank, self.rank, key, size, now, x),
        )

    def _send_in_turn(self, priority: int, x: Message, dst: int, tag: int) -> None:
        """Send as soon as the port is free and no message with a lower number waits there."""
        sim, rank, actor = self._sim, self._rank, self._actor
        size, x, key = nbytes(x), snapshot(x), (self._group, tag)
        receiver, out_port, in_port, latency, beta, overhead = self._routes.get(dst) or self._route(dst)
        if overhead:
            self._advance(overhead)
        rank.in_flight += 1
        sim.sync(actor)
        sent, busy = actor.now, size * beta

        def leave() -> None:
            sim.out_free[out_port] = sim.now + busy
            row = (sim.now + latency, sim.serial(), receiver, in_port, busy, rank, self.rank, key, size, sent, x)
            heappush(sim.heap, row)

        sim.queue(out_port).put(sent, priority, leave)

    def isend(self, x: Message, dst: int, tag: int = 0) -> Sent:
        self.send(x, dst, tag)
        return Sent(self, self._sim.out_free[self._routes[dst][1]])

    def recv(self, src: int, tag: int = 0) -> Message:
        if self._posted:
            return self.irecv(src, tag).wait()
        return self._take(src, tag)

    def irecv(self, src: int, tag: int = 0) -> Receipt:
        return Receipt(self, src, tag)

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        rank, actor, key = self._rank, self._actor, (self._group, tag)
        self._sim.sync(actor)
        while True:
            box = rank.boxes.get(key)
            if box:
                entry = min(box, key=_ready) if len(box) > 1 else box[0]
                if entry[0] > max(actor.now, self._sim.now):
                    self._sim.resume(entry[0], actor)  # its last byte is still on the way
                    self._sim.wait(actor)
                    continue
                box.remove(entry) if entry is not box[0] else box.popleft()
                return entry[1], self._arrived(entry)
            for lost in self._silent(tag):
                rank.told.add((*key, lost))
                self._waited(self._sim.now)
                return lost, None
            self._block(key, None, None)

    def poll(self, tag: int = 0) -> list[int]:
        self._sim.sync(self._actor)
        self._advance(POLL)
        box = self._rank.boxes.get((self._group, tag), ())
        return [src for ready, src, *_ in sorted(box, key=_ready) if ready <= self._actor.now] + self._silent(tag)

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        scale = {"sum": 1.0, "mean": 1.0 / self.size}[op]
        flat = x.reshape(-1)
        if not x.flags.c_contiguous:
            raise ValueError("all_reduce works in place: give it a contiguous array, or a copy of this one.")
        self._calls += 1
        if self._sim.collective == "fast":
            work = Reduction.join(self, flat, scale, priority)
        else:
            work = self._beside(ALL_REDUCE[self._sim.collective], flat, scale, priority) if async_op else None
        if async_op:
            return InPlace(work, x)
        if work:
            work.wait()
        else:
            self._together("all-reduce", ALL_REDUCE[self._sim.collective], flat, scale)
        return x

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        scale = {"sum": 1.0, "mean": 1.0 / self.size}[op]
        return self._together("reduce-scatter", collectives.reduce_scatter, x, scale)

    def all_gather(self, x: Message) -> list[Message]:
        return self._together("all-gather", collectives.all_gather, snapshot(x))

    def broadcast(self, x: Message, src: int = 0) -> Message:
        return self._together("broadcast", collectives.broadcast, snapshot(x), src)

    def barrier(self) -> None:
        self._together("barrier", collectives.barrier)

    def split(self, color: int | None) -> SimulatedComm | None:
        def groups(colors: list) -> dict:
            return {c: (self._sim.group_ids(), [m for m, own in zip(self.members, colors, strict=True) if own == c])
                    for c in dict.fromkeys(colors) if c is not None}  # fmt: skip

        made = meet(self, "split", color, groups)
        return None if color is None else type(self)(self._rank, self._actor, *made[color])

    def shared(self, like: np.ndarray, guard: Guard = "none") -> SharedVector:
        memory = meet(self, "shared", like, lambda vectors: Memory(vectors[0]))
        return SharedVector(self, memory, guarded(guard))

    # how it is done

    def _route(self, dst: int) -> tuple:
        if not 0 <= dst < self.size:
            raise ValueError(f"there is no rank {dst}; ranks are 0 to {self.size - 1}.")
        sim, source, target = self._sim, self._rank.number, self.members[dst]
        per_node = sim.network.per_node
        if source == target:
            link, out_port, in_port = Link(0.0, math.inf), sim.nodes + source, sim.nodes + source
        elif source // per_node == target // per_node:
            link, out_port, in_port = sim.network.within, sim.nodes + source, sim.nodes + target
        else:
            link, out_port, in_port = sim.network.between, source // per_node, target // per_node
        route = sim.ranks[target], out_port, in_port, link.latency, 1 / link.bandwidth, link.overhead
        self._routes[dst] = route
        return route

    def _take(self, src: int, tag: int) -> Message:
        """The next message of one rank, once it is here."""
        rank = self._rank
        if rank.watched:
            rank.live()
        key = (self._group, tag)
        box = rank.boxes.get(key)
        if box:
            for i, entry in enumerate(box):
                if entry[1] == src:
                    del box[i]
                    return self._arrived(entry)
        world = self.members[src]
        if world not in rank.heard:
            self._block(key, src, world)
            if self._actor.inbox:
                return self._arrived(self._actor.inbox)
        raise rank.heard[world].loss(f"rank {rank.number} waits for a message from it (tag {tag})")

    def _block(self, key: tuple, src: int | None, world: int | None) -> None:
        actor = self._actor
        if key in self._rank.waiting:
            raise ValueError(f"two receives wait for tag {key[1]} at once on rank {self.rank}")
        self._rank.waiting[key] = (actor, src, world)
        actor.since = actor.now
        self._sim.wait(actor)
        if self._rank.watched:
            self._rank.live()

    def _arrived(self, entry: tuple) -> Message:
        """Move this rank's time to the message's, and say what the time went on."""
        ready, _, x, sent = entry
        actor = self._actor
        start = actor.now
        if ready > start:
            actor.now = ready
            if actor is self._rank:
                if not actor.doing:
                    if sent > start:
                        actor.span(WAIT, start, sent if sent < ready else ready, "receive")
                        start = sent
                    actor.span(COMMUNICATE, start, ready, "receive")
                elif sent > start:  # a collective writes the time between its waits when it is done
                    actor.span(COMMUNICATE, actor.written, start, actor.doing)
                    actor.written = min(sent, ready)
                    actor.span(WAIT, start, actor.written, actor.doing)
        return x

    def _waited(self, until: float) -> None:
        actor = self._actor
        if until > actor.now:
            if actor is self._rank:
                actor.span(WAIT, actor.now, until, actor.doing or "receive")
            actor.now = until

    def _advance(self, seconds: float) -> None:
        actor = self._actor
        actor.now += seconds
        if actor is self._rank:
            actor.span(COMMUNICATE, actor.now - seconds, actor.now, "overhead")
            if actor.watched:
                actor.live()

    def _silent(self, tag: int) -> list[int]:
        """Lost members of which recv_any has not told under this tag."""
        if not self._rank.heard:
            return []
        known = [r for r, world in enumerate(self.members) if world in self._rank.heard]
        return [r for r in known if (self._group, tag, r) not in self._rank.told]

    def _together(self, name: str, algorithm: Callable, *args: Any) -> Any:
        """A collective, message by message, in this rank's own time."""
        actor, event_log = self._actor, self.event_log
        outer = actor.doing, event_log.busy
        actor.doing, event_log.busy, actor.written = name, True, actor.now  # its kernels are part of it
        try:
            return algorithm(self, *args)
        finally:
            actor.span(COMMUNICATE, actor.written, actor.now, name)
            actor.doing, event_log.busy = outer

    def _beside(self, algorithm: Callable, x: np.ndarray, scale: float, priority: int) -> Beside:
        """A collective, message by message, while the rank goes on with something else."""
        rank = self._rank
        rank.crowded = True
        helper = Actor(rank, self._actor.now)
        comm = copy(self)
        comm._actor, comm._routes, comm._posted = helper, {}, {}
        if priority:
            comm.send = partial(comm._send_in_turn, priority)
        work = Beside(self, helper)
        tag = COLLECTIVE - self._calls  # its own, since several may be under way

        def body(_: SimulatedComm) -> None:
            helper.doing = "all-reduce"
            algorithm(comm, x, scale, tag)
            work.finish()

        helper.greenlet = greenlet(partial(rank.main, body, comm, helper), parent=self._sim.hub)
        rank.helpers.append(helper)
        self._sim.at(helper.now, helper.greenlet.switch)
        return work


def _ready(entry: tuple) -> float:
    return entry[0]


class Sent:
    """A message that may still be leaving."""

    def __init__(self, comm: SimulatedComm, left: float):
        self._comm, self._left = comm, left

    def wait(self) -> None:
        self._comm._waited(self._left)


class Receipt:
    """A receive that was asked for; messages fill receipts in the order in which these were made."""

    def __init__(self, comm: SimulatedComm, src: int, tag: int):
        self._comm, self._src, self._tag = comm, src, tag
        self._filled, self._x = False, None
        self._queue = comm._posted.setdefault((src, tag), deque())
        self._queue.append(self)

    def wait(self) -> Message:
        while not self._filled:
            earliest = self._queue.popleft()
            earliest._x, earliest._filled = self._comm._take(self._src, self._tag), True
        return self._x


class Beside:
    """A collective running beside its rank."""

    def __init__(self, comm: SimulatedComm, helper: Actor):
        self._comm, self._helper, self._waiter, self._done = comm, helper, None, False

    def finish(self) -> None:
        self._done = True
        self._helper.rank.helpers.remove(self._helper)
        if self._waiter:
            self._comm._sim.resume(self._helper.now, self._waiter)

    def wait(self) -> None:
        actor = self._comm._actor
        actor.doing = "all-reduce"
        if not self._done:
            self._waiter, actor.since = actor, actor.now
            self._comm._sim.wait(actor)
        self._comm._waited(self._helper.now)
        actor.doing = ""


class InPlace:
    """The handle of a reduction: wait() gives the array, now reduced."""

    def __init__(self, work: Any, x: np.ndarray):
        self._work, self._x = work, x

    def wait(self) -> np.ndarray:
        self._work.wait()
        return self._x
