"""Ports and routes of the simulated cluster: the ports that a message from one rank to another passes.

A message passes the sender's port in `SimulatedComm.send` and the receiver's in `Delivery.happen`; see
`cluster.network.Port`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cluster.network import Link, Network, Port
from cluster.simulated.compiled_events import ROUTE
from cluster.simulated.event_queue import EventQueue
from cluster.simulated.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank


class SharedPort(ctypes.Structure):
    """A port whose `free` is an element of an array, so that compiled loops can use it as well."""

    _fields_ = (("free", ctypes.c_double),)
    free: float  # s
    carry = Port.carry
    __hash__ = object.__hash__  # ports are keys of the priority queues


@dataclass(slots=True)
class Route:
    """The route of a communicator's messages from one rank to another. `src` is the sender's rank in the group."""

    sender: Rank
    src: int
    receiver: Rank
    out: SharedPort
    into: SharedPort
    latency: float  # s
    beta: float  # s per byte
    overhead: float  # s of the sender's processor per message
    per_byte: float  # s of each end's processor per byte


class Ports:
    """All ports: one per direction of every NIC, and one per direction of every rank for messages within its node."""

    def __init__(self, queue: EventQueue, network: Network, size: int):
        self._network, self._size, self._nics = network, size, network.nic(size - 1) + 1
        self.free = np.zeros(2 * (self._nics + size))  # s: of NICs out and in, then of ranks out and in
        self._ports = list((SharedPort * len(self.free)).from_buffer(self.free))
        self._rings: dict[tuple[int, ...], np.ndarray] = {}
        self._queue = queue
        self._queues: dict[tuple[SharedPort, ...], PriorityQueue] = {}

    def _way(self, source: int, target: int) -> tuple[int, int, Link]:
        """Return the numbers of the two ports and the link between two world ranks."""
        network, nics, link = self._network, self._nics, self._network.link(source, target)
        if network.node(source) != network.node(target):
            return network.nic(source), nics + network.nic(target), link
        return 2 * nics + source, 2 * nics + self._size + target, link

    def route(self, sender: Rank, src: int, receiver: Rank) -> Route:
        """Return the route from `sender`, rank `src` of a group, to `receiver`."""
        out, into, link = self._way(sender.number, receiver.number)
        ports = self._ports[out], self._ports[into]
        return Route(sender, src, receiver, *ports, link.latency, 1 / link.bandwidth, link.overhead, link.per_byte)

    def routes(self, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """Return the routes between these pairs of world ranks as the array that compiled loops read."""
        ways = [self._way(source, target) for source, target in pairs]
        return np.array([(*at, link.latency, 1 / link.bandwidth, link.overhead) for *at, link in ways], ROUTE)

    def ring(self, members: tuple[int, ...]) -> np.ndarray:
        """Return the routes from each of these world ranks to the next, and from the last to the first."""
        if members not in self._rings:
            self._rings[members] = self.routes(list(zip(members, (*members[1:], members[0]), strict=True)))
        return self._rings[members]

    def priority_queue(self, *ports: SharedPort) -> PriorityQueue:
        """Return the queue of the messages that need all of these ports at the same time."""
        return self._queues.setdefault(ports, PriorityQueue(self._queue, ports))
