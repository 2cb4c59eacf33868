"""The Comm contract on real ranks; see `cluster/comm.py` for what each method promises.

Messages travel over links. Collectives are those of `cluster.collectives`, message by message, so a sum has the same
bits as on the simulated cluster. If torch.distributed is enabled and no collective is chosen by name, large vectors
are summed differently: by ranks of one computer in shared memory, with the bits of the ring; by ranks of several
computers with torch.distributed (gloo); and as tensors on GPUs with NCCL.

A lost rank ends the run only if another rank cannot continue without it: waiting for it by name raises RankLost,
recv_any returns one last None from it, and messages to it are dropped.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np

import kernels
from cluster import collectives
from cluster.comm import (
    ClusterError,
    Deadlock,
    Message,
    Op,
    RankLost,
    check_tag,
    flat,
    nbytes,
    one_for_each,
    scale_of,
    shares,
    snapshot,
    vector,
)
from cluster.real import memory
from cluster.real.all_reduce import LARGE, ThreadedAllReduce, TorchAllReduce
from cluster.real.emulated_network import sleep_until
from cluster.real.links import Envelope, PeersGone, Slot, Ticket
from cluster.real.rank_state import RankState, wait_of
from cluster.real.shared_all_reduce import SharedAllReduce, Staging
from cluster.shared_memory import Guard, check_guard
from cluster.waits import Wait, describe_deadlock
from tracing import COMMUNICATE


class RealComm:
    """The communicator of this process in the group of world ranks `members`."""

    def __init__(self, state: RankState, group: Any, members: list[int]):
        self._state, self._group, self.members = state, group, members
        self.rank, self.size = members.index(state.rank), len(members)
        self.nodes = [state.nodes[member] for member in members]
        self.device, self.event_log = state.device, state.event_log
        self._calls = 0  # collectives so far, the same number on every rank
        self._collective = ""  # the collective in progress
        self._logged = True  # whether messages are recorded in the event log
        self._waits: list[tuple] | None = None  # in a background all-reduce, when it was blocked: (since, until)
        self._failed: list[Exception] = []  # the first error of a collective, after which stray messages block others
        self._process_groups: dict = {}  # of torch.distributed: one for CUDA tensors (True), one for others (False)
        self._staging = Staging() if len(set(self.nodes)) == 1 else None  # for all-reduces on one computer

    @property
    def _sum(self) -> Callable:
        """The algorithm of all-reduces over this rank's own links.

        It is chosen at each call, since a network is emulated only once the run starts.

        Two ranks exchange in one round the bytes that a ring moves in two, and the result has the same bits. Over an
        emulated network they use the ring, as the simulated cluster does.
        """
        fast = collectives.recursive_doubling if self.size == 2 and not self._state.network else collectives.ring
        return collectives.ALL_REDUCE.get(self._state.collective, fast)

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        self._post(x, dst, tag)

    def isend(self, x: Message, dst: int, tag: int = 0) -> RealSend:
        ticket, left = self._post(x, dst, tag)
        return RealSend(self, ticket, left)

    def recv(self, src: int, tag: int = 0) -> Message:
        return self.irecv(src, tag).wait()

    def irecv(self, src: int, tag: int = 0) -> RealReceive:
        check_tag(tag, self._collective)
        return RealReceive(self, self._member(src), tag)

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        check_tag(tag)
        slot = self._state.links.slot(None, (self._group, tag))
        message = self._take(slot, None, tag)
        return self.members.index(message.src), message.x

    def poll(self, tag: int = 0) -> list[int]:
        check_tag(tag)
        arrived = self._state.links.ready_senders((self._group, tag), self._others())
        if not arrived:
            time.sleep(0)  # yield to the reader threads, since the caller is likely to poll again
        return [self.members.index(src) for src in arrived]

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        scale = scale_of(op, x, self.size)
        line = flat(x)
        if self._failed:
            raise self._failed[0]
        self._calls += 1
        if self._state.native and self.size > 1 and (x.nbytes >= LARGE or not isinstance(x, np.ndarray)):
            work: SharedAllReduce | TorchAllReduce
            if self._staging and isinstance(x, np.ndarray):
                work = SharedAllReduce(self, self._staging, x, line, scale, background=async_op)
            else:
                work = TorchAllReduce(self, x, line, scale)
            return work if async_op else work.wait(work.entered)
        if async_op:
            return ThreadedAllReduce(self, x, line, scale)
        self._run_collective("all-reduce", self._sum, line, scale)
        return x

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        scale = scale_of(op, x, self.size)
        if not isinstance(vector(x), np.ndarray):  # twice the bytes of a reduce-scatter, but the data stays on the GPUs
            return self.all_reduce(kernels.copy(x), op)[shares(len(x), self.size)[self.rank]]
        return self._run_collective("reduce-scatter", collectives.reduce_scatter, x, scale)

    def all_gather(self, x: Message) -> list[Message]:
        return self._run_collective("all-gather", collectives.all_gather, snapshot(x))

    def all_to_all(self, parts: Sequence[Message]) -> list[Message]:
        return self._run_collective("all-to-all", collectives.all_to_all, one_for_each(parts, self.size))

    def broadcast(self, x: Message, src: int = 0) -> Message:
        self._member(src)
        return self._run_collective("broadcast", collectives.broadcast, snapshot(x), src)

    def barrier(self) -> None:
        self._run_collective("barrier", collectives.barrier)

    def split(self, color: int | None) -> RealComm | None:
        nbytes(color)
        colors = self._without_log()._run_collective("split", collectives.all_gather, color)
        self._calls += 1
        members = [member for member, other in zip(self.members, colors, strict=True) if other == color]
        return None if color is None else type(self)(self._state, (self._group, self._calls, color), members)

    def shared(self, like: np.ndarray, guard: Guard = "none") -> memory.MappedVector:
        computers = {self._state.computers[member] for member in self.members}
        if len(computers) > 1:
            raise ValueError(
                f"shared memory needs all ranks on one computer, but these are on {len(computers)}; "
                "split them by computer, or send messages."
            )
        locks = check_guard(guard, like) in ("writes", "locked")
        quiet = self._without_log()
        descriptor, path = memory.create(like.nbytes) if self.rank == 0 else (-1, "")
        what = np.frombuffer(path.encode(), np.uint8), np.empty(0, like.dtype), like.shape
        name, kind, shape = quiet._run_collective("shared", collectives.broadcast, what, 0)
        if self.rank:
            path = name.tobytes().decode()
            descriptor = memory.open_path(path)
        mapped = memory.attach(descriptor, np.broadcast_to(np.empty((), kind.dtype), shape))
        if self.rank == 0:
            mapped[...] = like
        quiet._run_collective("shared", collectives.barrier)  # every rank has attached it
        own = os.dup(descriptor) if locks else -1
        memory.forget(descriptor, path if self.rank == 0 else "")
        return memory.MappedVector(mapped, guard, own)

    def _others(self) -> list[int]:
        return [member for member in self.members if member != self._state.rank]

    def _member(self, rank: int) -> int:
        """Return the world rank of `rank`, a rank of this group. Raise ValueError if there is no such rank."""
        if not 0 <= rank < self.size:
            raise ValueError(f"there is no rank {rank}; ranks are 0 to {self.size - 1}.")
        return self.members[rank]

    def _post(self, x: Message, dst: int, tag: int) -> tuple[Ticket, float]:
        """Send `x`. Return the ticket for `flush`, and the time at which `x` leaves the emulated port.

        Without emulation, that time is 0.
        """
        check_tag(tag, self._collective)
        state, event_log, target = self._state, self.event_log, self._member(dst)
        start = event_log.clock()
        if not (self._logged and state.emulates and target != state.rank):
            row = event_log.message(target, tag, nbytes(x), start) if self._logged else -1
            ticket, left = state.links.send(target, (self._group, tag), x, start, row), 0.0
        else:
            ticket, left = self._emulated_post(x, target, tag, start)
        if self._waits is None:
            event_log.mark = end = event_log.clock()
            event_log.spans.append((COMMUNICATE, start, end, event_log.step, self._collective or "send"))
        return ticket, left

    def _emulated_post(self, x: Message, target: int, tag: int, now: float) -> tuple[Ticket, float]:
        """Send as `_post` does and return the same, but at the emulated time and over the emulated network."""
        state, event_log, size = self._state, self.event_log, nbytes(x)
        sent, left, reaches, overhead = now, 0.0, math.nan, 0.0
        if state.compute and self._waits is None:
            sent = state.compute.stamp(now)
        if state.network:
            overhead = state.network.overhead(target)
            left, reaches = state.network.leave(target, size, sent)
        row = event_log.message(target, tag, size, sent)
        ticket = state.links.send(target, (self._group, tag), x, sent, row, reaches)
        if overhead and self._waits is None:
            if state.compute:
                state.compute.due = max(state.compute.due, sent + overhead)
            sleep_until(sent + overhead + event_log.zero)
        return ticket, left

    def _take(self, slot: Slot, src: int | None, tag: int) -> Envelope:
        """Wait for the message in `slot` and return it. `src` is a world rank, or None for any rank.

        Raise RankLost if the sender is lost, and Deadlock if it has finished or does not send in time.
        """
        state, event_log = self._state, self.event_log
        start = event_log.clock()
        if slot.envelope is None:
            waiting = (start, slot, self._collective, src, tag)
            if self._waits is None:
                state.waiting = waiting
            senders = self._others() if src is None else [src]
            try:
                in_time = state.links.wait(slot, senders, state.timeout)
            except PeersGone as gone:
                state.links.withdraw(slot)
                if gone.lost:
                    raise self._loss(gone.lost, wait_of(state.rank, waiting), gone.unreadable) from None
                wait = wait_of(state.rank, waiting)
                why = f"{'all others have' if src is None else f'rank {src} has'} finished"
                raise Deadlock(describe_deadlock([wait], [why]), [wait]) from None
            if not in_time:
                state.links.withdraw(slot)
                wait = wait_of(state.rank, waiting)
                raise Deadlock(f"timeout of {state.timeout:g} s exceeded: {wait}", [wait])
            if self._waits is None:
                state.waiting = None
        message = slot.envelope
        assert message  # it was waited for
        ready = message.sent
        if self._waits is None:
            if state.compute and self._logged:
                state.compute.resume(message.arrived - event_log.zero)
            event_log.record_blocked(start, ready, self._collective or "receive")
        else:
            self._waits.append((start, min(max(ready, start), event_log.clock())))
        state.links.note_sender(slot)
        return message

    def _loss(self, lost: list[int], consequence: Wait, unreadable: str = "") -> RankLost:
        what = f"sent something unreadable ({unreadable[:200]})" if unreadable else "was lost"
        return RankLost(f"rank {lost[0]} {what}; {consequence}", lost[0])

    def _run_collective(self, name: str, algorithm: Callable, *args: Any) -> Any:
        if self._failed:
            raise self._failed[0]
        outer, self._collective = self._collective, name
        try:
            return algorithm(self, *args)
        except Exception as error:
            self._failed.append(error)
            raise
        finally:
            self._collective = outer

    def _without_log(self) -> RealComm:
        """Return a copy of this communicator that records nothing. It is for set-up traffic, which is not the
        algorithm's.
        """
        quiet = copy(self)
        quiet._logged = False
        return quiet


class RealSend:
    """A send that may not have left this rank yet."""

    def __init__(self, comm: RealComm, ticket: Ticket, left: float):
        self._comm, self._ticket, self._left = comm, ticket, left

    def wait(self) -> None:
        event_log = self._comm.event_log
        start = event_log.clock()
        self._comm._state.links.flush(self._ticket)
        sleep_until(self._left + event_log.zero)
        event_log.record_blocked(start, start, "send")


class RealReceive:
    """A posted receive from world rank `src`. If waiting fails, the next wait posts it again."""

    def __init__(self, comm: RealComm, src: int, tag: int):
        self._comm, self._src, self._tag = comm, src, tag
        self._done, self._x = False, None
        self._slot: Slot | None = self._post_receive()

    def wait(self) -> Message:
        if not self._done:
            self._slot = slot = self._slot or self._post_receive()
            try:
                self._x, self._done = self._comm._take(slot, self._src, self._tag).x, True
            except ClusterError:
                self._slot = None
                raise
        return self._x

    def _post_receive(self) -> Slot:
        return self._comm._state.links.slot(self._src, (self._comm._group, self._tag))
