"""Meetings: what all ranks of a group do at one moment, computed once for all of them.

The fast all-reduce is the ring of `cluster.collectives` without its messages: the sums are formed in the ring's
order, to the bit, and the times follow the ring's recurrence for all ranks at once, also when they come at different
times. It costs one call instead of 2 P (P - 1) events.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit

import kernels
from cluster.comm import shares
from kernels import METER, metered
from tracing import COMMUNICATE, WAIT


def meet(comm, name: str, value: Any, build: Callable[[list], Any]) -> Any:
    """Wait for everybody's value; `build(values)`, made once, is everybody's result. Takes no time of its own."""
    sim, actor = comm._sim, comm._actor
    comm._calls += 1
    key = (comm._group, name, comm._calls)
    values = sim.meetings.setdefault(key, {})
    values[comm.rank] = (value, actor)
    if len(values) < comm.size:
        actor.since, actor.doing = actor.now, name
        sim.wait(actor)
        actor.doing = ""
    else:
        del sim.meetings[key]
        latest = max(other.now for _, other in values.values())
        built = build([values[rank][0] for rank in range(comm.size)])
        for _, other in values.values():
            other.inbox = (latest, built)
            if other is not actor:
                sim.resume(latest, other)
    latest, built = actor.inbox
    comm._waited(latest)
    return built


class Reduction:
    """One all-reduce on its way; done when the last rank has joined."""

    def __init__(self, comm):
        self.sim, self.members = comm._sim, comm.members
        self.joined: list = [None] * comm.size
        self.missing = comm.size
        self.ends: list[float] | None = None

    @classmethod
    def join(cls, comm, x: np.ndarray, scale: float, priority: int = 0) -> Joined:
        """Rank `comm.rank` brings its x at its present time. With a priority it waits for its turn among others."""
        comm._sim.sync(comm._actor)
        key = (comm._group, "all-reduce", comm._calls)
        work = comm._sim.meetings.get(key)
        if work is None:
            work = comm._sim.meetings[key] = cls(comm)
        joined = Joined(comm, work)
        work.joined[comm.rank] = (comm._actor.now, x, METER.get() is not None, joined)
        work.missing -= 1
        if not work.missing:
            del comm._sim.meetings[key]
            if priority and comm.size > 1:
                ports = [other.comm._route((rank + 1) % comm.size)[1] for rank, (*_, other) in enumerate(work.joined)]
                comm._sim.queue(*ports).put(comm._actor.now, priority, partial(work.reduce, scale))
            else:
                work.reduce(scale)
        return joined

    def reduce(self, scale: float) -> None:
        """Sum in the ring's order, and work out when each rank has it."""
        sim, size = self.sim, len(self.members)
        vectors = [x for _, x, _, _ in self.joined]
        lengths = {len(x) for x in vectors}
        if len(lengths) > 1:
            raise ValueError(f"all_reduce got vectors of different lengths: {sorted(lengths)}; they must be one.")
        self.arrived = [at for at, *_ in self.joined]
        self.last = max(self.arrived)
        pieces = shares(len(vectors[0]), size)
        self.ends = self._times(pieces, scale != 1.0, vectors[0]) if size > 1 else self.arrived
        with metered(None):
            total = ring_sum(vectors, pieces)
            if scale != 1.0:
                kernels.scale(total, scale)
        for x in vectors:
            x[...] = total
        for _, _, _, joined in self.joined:
            if joined.waiter:
                sim.resume(self.ends[joined.rank], joined.waiter)
        self.joined = []  # who joined knows this reduction: a circle, which would keep all vectors until the run ends

    def _times(self, pieces: list[slice], scaled: bool, x: np.ndarray) -> list[float]:
        """When each rank has the sum; `x` is like all the vectors. Takes the ports and writes down the messages."""
        sim, size = self.sim, len(self.members)
        comms = [joined.comm for *_, joined in self.joined]
        rights = [*range(1, size), 0]
        routes = [comm._routes.get(right) or comm._route(right) for comm, right in zip(comms, rights, strict=True)]
        nbytes = np.array([(piece.stop - piece.start) * x.itemsize for piece in pieces], float)
        shorter = pieces[-1].stop - pieces[-1].start
        slowness = np.array([[joined.comm._rank.slowness() if paid else 0.0] for *_, paid, joined in self.joined])
        adds = slowness * [_seconds(sim, kernels.add, x[: shorter + longer]) for longer in (0, 1)]
        scales = slowness * [_seconds(sim, kernels.scale, x[: shorter + longer], 1.0) for longer in (0, 1)] * scaled
        out_free = np.array([sim.out_free[route[1]] for route in routes])
        in_free = np.array([sim.in_free[route[2]] for route in routes])
        link = np.array([route[3:] for route in routes])
        arrived = np.array(self.arrived)
        ends = ring_times(arrived, out_free, in_free, link, nbytes, shorter * x.itemsize, adds, scales).tolist()
        sent = (2 * nbytes.sum() - nbytes - nbytes[rights]).astype(int).tolist()
        for rank, (right, route, left, came) in enumerate(
            zip(rights, routes, out_free.tolist(), in_free.tolist(), strict=True)
        ):
            sim.out_free[route[1]], sim.in_free[route[2]] = left, came
            row = (self.members[right], -1, sent[rank], self.arrived[rank], ends[right], True)
            comms[rank].event_log.messages.append(row)
        return ends


class Joined:
    """One rank's part in a reduction."""

    def __init__(self, comm, work: Reduction):
        self.comm, self.rank, self.work, self.waiter = comm, comm.rank, work, None

    def wait(self) -> None:
        """Block until this rank has the sum."""
        actor, work = self.comm._actor, self.work
        if work.ends is None:
            self.waiter, actor.since, actor.doing = actor, actor.now, "all-reduce"
            work.sim.wait(actor)
            actor.doing = ""
        end, start = work.ends[self.rank], actor.now
        if end > start:
            actor.now = end
            if work.last > start:
                actor.rank.span(WAIT, start, min(work.last, end), "all-reduce")
            actor.rank.span(COMMUNICATE, max(start, min(work.last, end)), end, "all-reduce")
            if actor.rank.watched:
                actor.rank.live()


def ring_sum(vectors: list[np.ndarray], pieces: list[slice]) -> np.ndarray:
    """The sum in the order in which a ring forms it: piece c starts on rank c + 1 and goes round to rank c.

    Two laps over the ranks read every vector once, from front to back.
    """
    total, first, last = np.empty_like(vectors[0]), vectors[0], pieces[-1]
    for piece, x in zip(pieces, vectors[1:], strict=False):
        if piece.start:
            kernels.add(total[: piece.start], x[: piece.start])
        total[piece] = x[piece]
    total[last] = first[last]
    if last.start:
        kernels.add(total[: last.start], first[: last.start])
    for piece, x in zip(pieces[1:], vectors[1:], strict=True):
        if piece.start < len(total):
            kernels.add(total[piece.start :], x[piece.start :])
    return total


@njit(cache=True)
def ring_times(arrived, out_free, in_free, link, nbytes, shorter, adds, scales):
    """When each rank of a ring has the sum: the recurrence of send, receive, add for all ranks, step by step.

    arrived, out_free, in_free, nbytes (P,): out_free[r] is the port of r, in_free[r] the port of r + 1, both of the
    link from r to r + 1; link (P, 3): latency, seconds per byte, overhead; adds, scales (P, 2): seconds for a
    shorter, a longer piece. The ports are left as they are afterwards.
    """
    size = arrived.size
    now = arrived.copy()
    first_byte = np.empty(size)
    for step in range(2 * (size - 1)):
        summing = step < size - 1
        piece = size - 1 - step % size  # what rank 0 sends; rank r sends the one r further
        for r in range(size):
            piece = piece if piece < size else piece - size
            now[r] += link[r, 2]
            leaves = max(now[r], out_free[r])
            out_free[r] = leaves + nbytes[piece] * link[r, 1]
            first_byte[r] = leaves + link[r, 0]
            piece += 1
        left = size - 1
        piece -= 1  # what the last rank sent, and rank 0 gets
        for r in range(size):
            got = nbytes[piece]
            in_free[left] = max(first_byte[left], in_free[left]) + got * link[left, 1]
            now[r] = max(now[r], in_free[left])
            if summing:
                now[r] += adds[r, 1 if got > shorter else 0]
            if step == size - 2:
                now[r] += scales[r, 1 if nbytes[r] > shorter else 0]
            left = r
            piece = piece + 1 if piece + 1 < size else 0
    return now


def _seconds(sim, kernel, x: np.ndarray, *args: Any) -> float:
    flops, words = kernel.price(x, *(args or (x,)))
    return sim.device.seconds(flops, words * x.itemsize)
