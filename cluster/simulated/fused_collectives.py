"""Operations of a whole group that are computed once for all of its ranks.

The fused all-reduce is the ring of `cluster.collectives` without its messages. The sums are formed in the ring's order,
bit for bit, and the times follow the ring's recurrence for all ranks at once, even if they join at different times. It
costs one call instead of 2 P (P - 1) messages.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import kernels
from cluster.comm import shares
from cluster.network import Link
from cluster.simulated.actor import Actor
from cluster.simulated.ring_recurrence import ring_sum, ring_times
from kernels import METER, meter_kernels
from tracing import COMMUNICATE, WAIT

if TYPE_CHECKING:
    from cluster.simulated.comm import SimulatedComm
    from cluster.simulated.ports import Route
    from cluster.simulated.rank import Rank


class Rendezvous:
    """An operation that is done once the last rank of the group has joined."""

    def __init__(self):
        self.values: dict[int, Any] = {}  # by rank
        self.actors: list[Actor] = []
        self.end, self.result = 0.0, None


def rendezvous(comm: SimulatedComm, name: str, value: Any, build: Callable[[list], Any]) -> Any:
    """Wait until every rank of the group has given a value. Return `build(values)`, called once for all ranks.

    This takes no time beyond the wait for the last rank. If a collective of the group has failed before, raise its
    error.
    """
    queue, pending, actor = comm._sim.queue, comm._sim.pending, comm._actor
    if comm._failed:
        raise comm._failed[0]
    comm._calls += 1
    key = (comm.group, name, comm._calls)
    joined = pending.setdefault(key, Rendezvous())
    joined.values[comm.rank] = value
    joined.actors.append(actor)
    if len(joined.values) < comm.size:
        actor.blocked_since, actor.collective = actor.now, name
        queue.wait(actor)
        actor.collective = ""
    else:
        del pending[key]
        joined.end = max(other.now for other in joined.actors)
        joined.result = build([joined.values[rank] for rank in range(comm.size)])
        for other in joined.actors:
            if other is not actor:
                queue.push(joined.end, other)
    actor.wait_until(joined.end)
    return joined.result


class Participant:
    """One rank's part in a fused all-reduce, and the handle to wait for it."""

    def __init__(self, comm: SimulatedComm, work: FusedAllReduce, x: np.ndarray):
        self.comm, self.work, self.x = comm, work, x
        self.joined, self.metered = comm._actor.now, METER.get() is not None
        self.waiter: Actor | None = None
        self.end = 0.0  # s: when this rank has the sum

    def wait(self) -> None:
        """Block until this rank has the sum.

        Raise ValueError if the ranks' vectors do not match, and RankLost if a rank is lost before that.
        """
        actor, work, queue = self.comm._actor, self.work, self.comm._sim.queue
        if not work.done and not work.error and not self.lost_rank():
            self.waiter, actor.blocked_since, actor.collective = actor, actor.now, "all-reduce"
            self.advance(actor, work.lost)
            self.comm.owner.summing = self
            try:
                queue.wait(actor)
            finally:
                self.waiter = self.comm.owner.summing = None
            actor.collective = ""
        if work.error:
            actor.wait_until(work.last)
            self.comm._failed.append(work.error)
            raise work.error
        if not work.done:
            actor.wait_until(queue.now)
            lost = self.lost_rank()
            assert lost  # otherwise nothing could have woken it
            self.comm._failed.append(lost.loss(f"rank {self.comm.owner.number} waits in all-reduce for it"))
            raise self.comm._failed[-1]
        if self.end > actor.now:
            self.advance(actor, self.end)
            if actor.interruptible:
                actor.interrupt()

    def lost_rank(self) -> Rank | None:
        """Return a rank of the group that this rank knows to be lost, if there is one."""
        known = self.comm.owner.mailbox.lost
        return next((known[member] for member in self.comm.members if member in known), None)

    def report(self) -> None:
        """Wake this rank if a loss has been reported to it, since it would otherwise wait forever."""
        if self.waiter and not self.work.done and not self.work.error and self.lost_rank():
            queue = self.comm._sim.queue
            queue.push(queue.now, self.waiter)
            self.waiter = None  # another may be lost at the same time

    def advance(self, actor: Actor, until: float) -> None:
        """Advance to `until`: this rank waits until the last rank has joined, and then communicates."""
        rank, start, moving = actor.rank, actor.now, min(self.work.last, until)
        actor.now = max(start, until)
        rank.span(WAIT, start, moving, "all-reduce")
        rank.span(COMMUNICATE, max(start, moving), until, "all-reduce")


def mismatch(rank: int, wanted: tuple, others: tuple) -> ValueError:
    """Return the error for a `rank` that wants a different sum from the others. A sum is (length, dtype, scale)."""
    ours, theirs = (f"{length} numbers ({dtype})" for length, dtype, _ in (wanted, others))
    other = f"reduce {theirs}" if theirs != ours else "ask for another op"
    return ValueError(
        f"mismatched all-reduce: rank {rank} reduces {ours}, but others of its group {other}; use the same length, "
        "type and op on every rank."
    )


class FusedAllReduce:
    """One all-reduce in progress. It is computed when the last rank has joined."""

    def __init__(self, size: int, wanted: tuple):
        self.missing, self.wanted = size, wanted
        self.error: ValueError | None = None  # raised on all ranks: their vectors do not match
        self.by_rank: dict[int, Participant] = {}  # by rank
        self.participants: list[Participant] = []  # in the order of ranks, when all have joined
        self.last, self.done = 0.0, False  # when all had joined, s
        self.lost = 0.0  # when a rank was lost without which there is no sum, s; 0 if none was

    @classmethod
    def join(cls, comm: SimulatedComm, x: np.ndarray, scale: float, priority: int = 0) -> Participant:
        """Let the rank of `comm` join its group's sum, and return its part. The last rank to join starts the sum, which
        with a priority waits its turn at the ports.
        """
        sim = comm._sim
        sim.queue.sync(comm._actor)
        key, wanted = (comm.group, "all-reduce", comm._calls), (len(x), x.dtype, scale)
        work = sim.pending.get(key)
        if work is None:
            work = sim.pending[key] = cls(comm.size, wanted)
        participant = work.by_rank[comm.rank] = Participant(comm, work, x)
        work.missing -= 1
        if wanted != work.wanted and not work.error:
            work.refuse(comm, wanted)
        if not work.missing:
            del sim.pending[key]
            if work.error:
                return participant
            work.participants = [work.by_rank[rank] for rank in range(comm.size)]
            if priority and comm.size > 1:
                ports = [route.out for route in work.routes()]
                sim.ports.priority_queue(*ports).put(comm._actor.now, priority, partial(work.reduce, scale))
            else:
                work.reduce(scale)
        return participant

    def refuse(self, comm: SimulatedComm, wanted: tuple) -> None:
        """Make wait() raise on all ranks of the group, since the rank of `comm` wants a different sum."""
        self.error = mismatch(comm.rank, wanted, self.wanted)
        self.last = comm._actor.now
        for _, participant in sorted(self.by_rank.items()):
            if participant.waiter:
                comm._sim.queue.push(self.last, participant.waiter)

    def routes(self) -> list[Route]:
        """Return the route from each rank to its right neighbour in the ring."""
        comms = [participant.comm for participant in self.participants]
        rights = [*range(1, len(comms)), 0]
        return [comm.route(right) for comm, right in zip(comms, rights, strict=True)]

    def reduce(self, scale: float) -> None:
        """Sum in the ring's order, and compute when each rank has the sum. If a rank is lost first, no rank gets it."""
        participants = self.participants
        vectors = [participant.x for participant in participants]
        self.last = max(participant.joined for participant in participants)
        pieces = shares(len(vectors[0]), len(vectors))
        ends, messages = self._times(pieces, scale != 1.0) if len(vectors) > 1 else ([participants[0].joined], [])
        lost = min(participant.comm.owner.crash_time for participant in participants)
        if lost < max(ends):
            self._break_off(lost)
            return
        self.done = True
        with meter_kernels(None):
            total = ring_sum(vectors, pieces)
            if scale != 1.0:
                kernels.scale(total, scale)
        for participant, end in zip(participants, ends, strict=True):
            participant.x[...] = total
            participant.end = end
        for participant, message in zip(participants, messages, strict=False):
            participant.comm.event_log.messages.append(message)
        if len(vectors) > 1:
            self._count(pieces, scale != 1.0)
        for participant in participants:
            if participant.waiter:
                participant.comm._sim.queue.push(participant.end, participant.waiter)
        self.by_rank, self.participants = (
            {},
            [],
        )  # breaks a reference cycle, which would keep the vectors until the run ends

    def _break_off(self, lost: float) -> None:
        """Record that the ranks communicate until a rank is lost, at time `lost`, and wait for that rank from
        then on.
        """
        self.lost = lost
        for participant in self.participants:
            if participant.waiter:
                participant.advance(participant.waiter, lost)

    def _count(self, pieces: list[slice], scaled: bool) -> None:
        """Add the FLOPs of each rank's sums to its event log. In the ring, a rank adds all pieces except one."""
        x, prices = self.participants[0].x, {}
        for rank, participant in enumerate(self.participants):
            if participant.metered:
                lengths = pieces[rank - 1].stop - pieces[rank - 1].start, pieces[rank].stop - pieces[rank].start
                if lengths not in prices:  # there are at most four different ones
                    adds = kernels.add.price(x[: len(x) - lengths[0]], x)[0]
                    prices[lengths] = adds + kernels.scale.price(x[: lengths[1]], 1.0)[0] * scaled
                participant.comm.event_log.flops += prices[lengths]

    def _in_memory(self, total: Link, nbytes: float, scales: np.ndarray) -> tuple[list[float], list[tuple]]:
        """Return when each rank has the sum, in s, and one message row per rank, for a sum formed in shared memory."""
        size = len(self.participants)
        share = 2 * (size - 1) / size * nbytes
        ends = (self.last + total.latency + share / total.bandwidth + scales).tolist()
        rights = [*self.participants[1:], self.participants[0]]
        return ends, [
            (right.comm.owner.number, -1, int(share), participant.joined, max(ends), True)
            for participant, right in zip(self.participants, rights, strict=True)
        ]

    def _times(self, pieces: list[slice], scaled: bool) -> tuple[list[float], list[tuple]]:
        """Return when each rank has the sum, in s, and one message row per rank. Occupy the ports until then."""
        participants = self.participants
        comm, x = participants[0].comm, participants[0].x
        sim, device, members = comm._sim, comm._sim.device, comm.members
        routes, free = sim.ports.ring(tuple(members)), sim.ports.free

        def seconds(kernel: Any, length: int, *args: Any) -> float:
            flops, words = kernel.price(x[:length], *(args or (x[:length],)))
            return device.seconds(flops, words * x.itemsize)

        nbytes = np.array([(piece.stop - piece.start) * x.itemsize for piece in pieces], float)
        shorter = pieces[-1].stop - pieces[-1].start
        slowness = np.array([[p.comm.owner.slowness() if p.metered else 0.0] for p in participants])
        adds = slowness * np.array([seconds(kernels.add, shorter + longer) for longer in (0, 1)])
        scales = slowness * np.array([seconds(kernels.scale, shorter + longer, 1.0) for longer in (0, 1)]) * scaled
        out_free, in_free = free[routes["out"]], free[routes["into"]]
        link = np.stack([routes["latency"], routes["beta"], routes["overhead"]])
        joined = np.array([participant.joined for participant in participants])
        if total := participants[0].comm._sim.network.sum:
            return self._in_memory(total, float(nbytes.sum()), scales[:, -1])
        ends = ring_times(joined, out_free, in_free, link, nbytes, shorter * x.itemsize, adds, scales).tolist()
        free[routes["out"]], free[routes["into"]] = out_free, in_free
        sent = (2 * nbytes.sum() - nbytes - np.roll(nbytes, -1)).astype(int).tolist()
        rights, arrived = [*members[1:], members[0]], [*ends[1:], ends[0]]
        rows = zip(rights, sent, joined.tolist(), arrived, strict=True)
        return ends, [(right, -1, size, start, end, True) for right, size, start, end in rows]
