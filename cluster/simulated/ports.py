"""Network ports of the simulated cluster: who may send and receive when.

A message of n bytes sent at time t over a link with latency a and 1/b bytes per second:

    leaves    d = max(t, sender's port free)                the port is busy until d + n b (`SimulatedComm.send`)
    arrives   r = max(d + a, receiver's port free) + n b    this port until r (`Delivery.happen`)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.network import Link, Network
from cluster.simulated.event_queue import EventQueue
from cluster.simulated.priority_queue import PriorityQueue

if TYPE_CHECKING:
    from cluster.simulated.rank import Rank


class Port:
    """One direction of a network interface; it carries one message at a time."""

    __slots__ = ("free",)

    def __init__(self):
        self.free = 0.0  # s, when the last byte of all messages so far has passed


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


class Ports:
    """All ports: one each way per node, and one each way per rank for messages within its node."""

    def __init__(self, queue: EventQueue, network: Network, size: int):
        self._network = network
        nodes = -(-size // network.per_node)
        self._node_out, self._node_in = [Port() for _ in range(nodes)], [Port() for _ in range(nodes)]
        self._rank_out, self._rank_in = [Port() for _ in range(size)], [Port() for _ in range(size)]
        self._queue, self._queues = queue, {}

    def route(self, sender: Rank, src: int, receiver: Rank) -> Route:
        """Return the route from `sender`, rank `src` of a group, to `receiver`; a message to oneself takes no time."""
        source, target, network = sender.number, receiver.number, self._network
        node, other = source // network.per_node, target // network.per_node
        if node != other:
            link, out, into = network.between, self._node_out[node], self._node_in[other]
        else:
            link = network.within if source != target else Link(0.0, math.inf)
            out, into = self._rank_out[source], self._rank_in[target]
        return Route(sender, src, receiver, out, into, link.latency, 1 / link.bandwidth, link.overhead)

    def priority_queue(self, *ports: Port) -> PriorityQueue:
        """Return the queue of messages that need all of these ports at once."""
        return self._queues.setdefault(ports, PriorityQueue(self._queue, ports))
