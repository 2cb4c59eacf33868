"""Ports and routes of the simulated cluster: which ports a message from one rank to another passes.

A message passes the sender's port in `SimulatedComm.send` and the receiver's in `Delivery.happen`; see
`cluster.network.Port`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.network import Network, Port
from cluster.simulated.event_queue import EventQueue
from cluster.simulated.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank


@dataclass(slots=True)
class Route:
    """The way of a communicator's messages from one rank to another; `src` is the sender's rank in the group."""

    sender: Rank
    src: int
    receiver: Rank
    out: Port
    into: Port
    latency: float  # s
    beta: float  # s per byte
    overhead: float  # s of the sender per message
    per_byte: float  # s of either end's processor per byte


class Ports:
    """All ports: one each way per node, and one each way per rank for messages within its node."""

    def __init__(self, queue: EventQueue, network: Network, size: int):
        self._network = network
        nodes = network.node(size - 1) + 1
        self._node_out, self._node_in = [Port() for _ in range(nodes)], [Port() for _ in range(nodes)]
        self._rank_out, self._rank_in = [Port() for _ in range(size)], [Port() for _ in range(size)]
        self._queue, self._queues = queue, {}

    def route(self, sender: Rank, src: int, receiver: Rank) -> Route:
        """Return the route from `sender`, rank `src` of a group, to `receiver`."""
        source, target, network = sender.number, receiver.number, self._network
        node, other, link = network.node(source), network.node(target), network.link(source, target)
        if node != other:
            out, into = self._node_out[node], self._node_in[other]
        else:
            out, into = self._rank_out[source], self._rank_in[target]
        return Route(sender, src, receiver, out, into, link.latency, 1 / link.bandwidth, link.overhead, link.per_byte)

    def priority_queue(self, *ports: Port) -> PriorityQueue:
        """Return the queue of messages that need all of these ports at once."""
        return self._queues.setdefault(ports, PriorityQueue(self._queue, ports))
