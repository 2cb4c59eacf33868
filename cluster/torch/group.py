"""The process group: its members, and how a rank joins a collective, sends and receives."""

from collections.abc import Callable
from typing import Any

import torch

from cluster.comm import ClusterError
from cluster.simulated.comm import SimulatedComm
from cluster.torch.collectives import Collectives, Durations, Tensors
from cluster.torch.handshake import Match, Receiving, Sending
from cluster.torch.meeting import Call, Meeting
from cluster.torch.process import Process, at_line
from cluster.torch.streams import current_stream
from cluster.torch.work import CollectiveWork, ReceiveWork, SendWork


class Group(Collectives):
    """The group of the world ranks `members`, as the rank of `process` sees it."""

    def __init__(self, process: Process, place: int, members: list[int], label: str):
        super().__init__(place, len(members))
        self.process, self.members, self.label = process, members, label
        self._place, self._size, self.world_rank = place, len(members), process.rank.number
        self.comm = SimulatedComm(process.rank, process.rank, (label, *members), members)
        self.calls = 0

    def describe(self) -> str:
        """Return the group in words, such as "group 'default'" or "group '3' (ranks 0, 2)"."""
        if self._size == self.process.comm.size:
            return "group 'default'" if self.label in ("0", "default_pg") else f"group '{self.label}' (all ranks)"
        shown = ", ".join(map(str, self.members[:6])) + ", ..." * (self._size > 6)
        return f"group '{self.label}' (ranks {shown})"

    def getBackendName(self) -> str:
        return "lockstep"

    def size(self) -> int:
        return self._size

    def rank(self) -> int:
        return self._place

    @property
    def group_name(self) -> str:
        return self.label

    pg_name = group_name

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def _has_hooks(self) -> bool:
        return False

    def shutdown(self) -> None:
        """Do nothing: the group has no threads and no sockets."""

    abort = shutdown

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: `calls` serves as the sequence number."""

    def _get_sequence_number_for_group(self) -> int:
        return self.calls

    def _join(self, call: Call, payload: Any, result: Any, durations: Durations, work: Callable) -> CollectiveWork:
        process, pending = self.process, self.process.sim.pending
        process.enter()
        if call.root is not None and not 0 <= call.root < self._size:
            raise ClusterError(
                f"rank {self.world_rank} calls {call}{at_line(process)}, but {self.describe()} has {self._size} ranks; "
                f"use a root from 0 to {self._size - 1}."
            )
        begins = current_stream().begin(payload)
        self.calls += 1
        key = self.label, tuple(self.members), self.calls
        meeting = pending.get(key) or pending.setdefault(key, Meeting(self, call))
        if meeting.join(self, call, payload, begins):
            del pending[key]
            with process.pricer.pause():
                meeting.finish(durations, work)
        process.leave()
        return CollectiveWork(self, result, meeting, begins)

    def send(self, tensors: Tensors, dst: int, tag: int = 0) -> SendWork:
        process = self.process
        process.enter()
        with process.pricer.pause():
            sending = Sending(self, tensors[0].detach().clone(), dst, tag)
        self._match(dst, tag).send(self._place, sending)
        process.leave()
        return SendWork(self, tensors, sending)

    def recv(self, tensors: Tensors, src: int, tag: int = 0) -> ReceiveWork:
        return self._receive(tensors, src, tag)

    def recv_anysource(self, tensors: Tensors, tag: int = 0) -> ReceiveWork:
        return self._receive(tensors, None, tag)

    def _receive(self, tensors: Tensors, src: int | None, tag: int) -> ReceiveWork:
        self.process.enter()
        receiving = Receiving(self, tensors[0], src, tag)
        self._match(self._place, tag).receive(src, self.process.rank.now)
        self.process.leave()
        return ReceiveWork(self, tensors, receiving)

    def _match(self, dst: int, tag: int) -> Match:
        return self.process.shared.matches.setdefault((self.label, *self.members, dst, tag), Match())
