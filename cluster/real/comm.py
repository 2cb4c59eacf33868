"""The Comm contract among real ranks; see `cluster/comm.py` for what each method promises.

Messages go over links. Collectives are those of `cluster.collectives`, message by message, so a sum has the same bits
as on the simulated cluster. Where torch.distributed was asked for, it sums what is large (gloo) or on GPUs (NCCL),
unless a collective was chosen by name.

A rank that is lost ends the run only if another cannot go on without it: whoever waits for it by name gets RankLost,
recv_any hears one last None from it, and what is sent to it nobody hears.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from cluster import collectives
from cluster.comm import Deadlock, Guard, Message, Op, RankLost, guarded, nbytes, shares, snapshot
from cluster.real import memory
from cluster.real.links import Gone, Slot
from cluster.real.sums import LARGE, SumBeside, TorchSum
from cluster.real.world import World, complaint
from tracing import COMMUNICATE


class RealComm:
    """Rank `rank` of the group of world ranks `members`."""

    def __init__(self, world: World, group: Any, members: list[int]):
        self._world, self._group, self.members = world, group, members
        self.rank, self.size = members.index(world.rank), len(members)
        self.nodes = [world.computers[member] for member in members]
        self.device, self.event_log = world.device, world.event_log
        self._calls = 0  # collectives so far: every rank counts the same
        self._doing = ""  # the collective it is in
        self._noted = True  # its messages are written down
        self._waits: list[tuple] | None = None  # of a sum beside the rank: when it stood still
        self._process_groups: dict = {}  # of torch, by kind
        # two ranks move the same bytes at once that a ring moves in two rounds, to the same bits
        fast = collectives.recursive_doubling if self.size == 2 else collectives.ring
        self._sum = collectives.ALL_REDUCE.get(world.collective, fast)

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        self._post(x, dst, tag)

    def isend(self, x: Message, dst: int, tag: int = 0) -> Sent:
        return Sent(self, self.members[dst], self._post(x, dst, tag))

    def recv(self, src: int, tag: int = 0) -> Message:
        return self.irecv(src, tag).wait()

    def irecv(self, src: int, tag: int = 0) -> Receipt:
        world = self._member(src)
        return Receipt(self, self._world.links.slot(world, (self._group, tag)), world, tag)

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        slot = self._world.links.slot(None, (self._group, tag))
        x = self._taken(slot, None, tag)
        return self.members.index(slot.parcel.src), x

    def poll(self, tag: int = 0) -> list[int]:
        arrived = self._world.links.arrived((self._group, tag), self._others())
        if not arrived:
            time.sleep(0)  # let the threads that read have their turn, since whoever polls will poll again
        return [self.members.index(src) for src in arrived]

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        scale = {"sum": 1.0, "mean": 1.0 / self.size}[op]
        flat = _flat(x)
        self._calls += 1
        if self._world.native and self.size > 1 and (x.nbytes >= LARGE or not isinstance(x, np.ndarray)):
            work = TorchSum(self, x, flat, scale)
            return work if async_op else work.wait(work.entered)
        if async_op:
            return SumBeside(self, x, flat, scale)
        self._together("all-reduce", self._sum, flat, scale)
        return x

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        if not isinstance(x, np.ndarray):  # twice the bytes of a reduce-scatter, but done by the GPUs
            return self.all_reduce(x.clone(), op)[shares(len(x), self.size)[self.rank]]
        scale = {"sum": 1.0, "mean": 1.0 / self.size}[op]
        return self._together("reduce-scatter", collectives.reduce_scatter, x, scale)

    def all_gather(self, x: Message) -> list[Message]:
        return self._together("all-gather", collectives.all_gather, snapshot(x))

    def broadcast(self, x: Message, src: int = 0) -> Message:
        self._member(src)
        return self._together("broadcast", collectives.broadcast, snapshot(x), src)

    def barrier(self) -> None:
        self._together("barrier", collectives.barrier)

    def split(self, color: int | None) -> RealComm | None:
        self._calls += 1
        colors = self._unnoted()._together("split", collectives.all_gather, color)
        members = [member for member, other in zip(self.members, colors, strict=True) if other == color]
        return None if color is None else RealComm(self._world, (self._group, self._calls, color), members)

    def shared(self, like: np.ndarray, guard: Guard = "none") -> memory.SharedVector:
        computers = {self._world.computers[member] for member in self.members}
        if len(computers) > 1:
            raise ValueError(
                f"shared memory needs all ranks on one computer, these are on {len(computers)}; "
                "split them by computer, or send messages."
            )
        locks = guarded(guard) in ("writes", "locked")
        if locks and not memory.fcntl:
            raise ValueError(f"guard {guard!r} locks files, which this system cannot; use none or atomic.")
        quiet = self._unnoted()
        descriptor, path = memory.create(like.nbytes) if self.rank == 0 else (-1, "")
        name = quiet._together("shared", collectives.broadcast, np.frombuffer(path.encode(), np.uint8), 0)
        if self.rank:
            path = name.tobytes().decode()
            descriptor = memory.open_path(path)
        vector = memory.attach(descriptor, like)
        if self.rank == 0:
            vector[...] = like
        quiet._together("shared", collectives.barrier)  # everybody has it
        own = os.dup(descriptor) if locks else -1
        memory.forget(descriptor, path if self.rank == 0 else "")
        return memory.SharedVector(vector, guard, own)

    # how it is done

    def _others(self) -> list[int]:
        """The other ranks of this group, by their numbers in the world."""
        return [member for member in self.members if member != self._world.rank]

    def _member(self, rank: int) -> int:
        """The number in the world of a rank of this group."""
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank}; ranks are 0 to {self.size - 1}.")
        return self.members[rank]

    def _post(self, x: Message, dst: int, tag: int) -> int:
        world, event_log, target = self._world, self.event_log, self._member(dst)
        start = event_log.clock()
        row = event_log.message(target, tag, nbytes(x), start) if self._noted else -1
        ticket = world.links.send(target, (self._group, tag), x, start + event_log.zero, row)
        if self._waits is None:
            event_log.mark = end = event_log.clock()
            event_log.spans.append((COMMUNICATE, start, end, event_log.step, self._doing or "send"))
        return ticket

    def _taken(self, slot: Slot, src: int | None, tag: int) -> Message:
        """The message in the slot, once it is there; `src` counts in the world, None for anybody."""
        world, event_log = self._world, self.event_log
        start = event_log.clock()
        if slot.parcel is None:
            waiting = (start, slot, self._doing, src, tag)
            if self._waits is None:
                world.waiting = waiting
            senders = self._others() if src is None else [src]
            try:
                in_time = world.links.wait(slot, senders, world.timeout)
            except Gone as gone:
                if gone.lost:
                    raise self._lost(gone.lost, complaint(world.rank, waiting)) from None
                why = f"; {'all others have' if src is None else f'rank {src} has'} finished"
                raise Deadlock(f"deadlock, nothing is on its way: {complaint(world.rank, waiting)}{why}.") from None
            if not in_time:
                raise Deadlock(f"{complaint(world.rank, waiting)}, longer than the timeout of {world.timeout:g} s.")
            if self._waits is None:
                world.waiting = None
        ready = slot.parcel.sent - event_log.zero
        if self._waits is None:
            event_log.blocked(start, ready, self._doing or "receive")
        else:
            self._waits.append((start, min(max(ready, start), event_log.clock())))
        return slot.parcel.x

    def _lost(self, lost: list[int], consequence: str) -> RankLost:
        return RankLost(f"rank {lost[0]} was lost; {consequence}", lost[0])

    def _together(self, name: str, algorithm: Callable, *args: Any) -> Any:
        """A collective, message by message."""
        outer, self._doing = self._doing, name
        try:
            return algorithm(self, *args)
        finally:
            self._doing = outer

    def _unnoted(self) -> RealComm:
        """The same communicator for arrangements that are not the algorithm's traffic."""
        quiet = copy(self)
        quiet._noted = False
        return quiet


class Sent:
    """A message that may still be leaving."""

    def __init__(self, comm: RealComm, dst: int, ticket: int):
        self._comm, self._dst, self._ticket = comm, dst, ticket

    def wait(self) -> None:
        event_log = self._comm.event_log
        start = event_log.clock()
        self._comm._world.links.flush(self._dst, self._ticket)
        event_log.blocked(start, start, "send")


class Receipt:
    """A receive that was asked for."""

    def __init__(self, comm: RealComm, slot: Slot, src: int, tag: int):
        self._comm, self._slot, self._src, self._tag = comm, slot, src, tag
        self._done, self._x = False, None

    def wait(self) -> Message:
        if not self._done:
            self._x, self._done = self._comm._taken(self._slot, self._src, self._tag), True
        return self._x


def _flat(x: Any) -> Any:
    """`x` as a vector in the same memory."""
    if not (x.flags.c_contiguous if isinstance(x, np.ndarray) else x.is_contiguous()):
        raise ValueError("all_reduce works in place: give it a contiguous array, or a copy of this one.")
    return x.reshape(-1)
