"""Emulated networks among real ranks: a message is seen when the emulated network would have delivered it.

    sender      `leave`   overhead, port out, latency: when the first byte reaches the receiver's port, which the frame
                          carries
    receiver    `enter`   port in: when the last byte is in; `Links` hold the message until then

Links and ports are those of `cluster.network`, which the simulated cluster computes with, too. Ranks that use one NIC
share its two ports, in memory that they share. What the real network takes longer than the emulated one comes on top.
Times are in seconds of the run's clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from cluster.network import Network, Port
from cluster.real.memory import MappedVector

OUT, INTO = 0, 1


class EmulatedNetwork:
    """What one rank knows of the emulated network: its links, its own ports, and those of its NIC.

    `shared` has the times at which the two ports of the NIC are free, if several ranks use it.
    """

    def __init__(self, network: Network, rank: int, shared: MappedVector | None = None):
        self._network, self._rank, self._shared = network, rank, shared
        self._nic_ports, self._own_ports = (Port(), Port()), (Port(), Port())
        self._turn = Lock()  # all-reduces in the background send, too
        self.shares_port = shared is not None

    @property
    def descriptor(self) -> int:
        """The file descriptor, in this process, of the memory with the NIC's ports; -1 if it has them alone."""
        return -1 if self._shared is None else self._shared.descriptor

    def overhead(self, dst: int) -> float:
        """Return the seconds that a message to `dst` takes of this rank's processor."""
        return self._network.link(self._rank, dst).overhead

    def leave(self, dst: int, nbytes: int, sent: float) -> tuple[float, float]:
        """Return when a message to `dst` has left this rank's port, and when its first byte reaches the receiver's."""
        link = self._network.link(self._rank, dst)
        with self._port(dst, OUT) as port:
            leaves = port.carry(sent + link.overhead, nbytes / link.bandwidth)
            return port.free, leaves + link.latency

    def enter(self, src: int, nbytes: int, reaches: float) -> float:
        """Return when a message from `src`, whose first byte reaches this rank's port at `reaches`, has arrived."""
        with self._port(src, INTO) as port:
            port.carry(reaches, nbytes / self._network.link(src, self._rank).bandwidth)
            return port.free

    @contextmanager
    def _port(self, other: int, way: int) -> Iterator[Port]:
        """Hold the port that messages to or from rank `other` pass."""
        if self._network.node(other) == self._network.node(self._rank):
            with self._turn:
                yield self._own_ports[way]
        elif self._shared is None:
            with self._turn:
                yield self._nic_ports[way]
        else:
            with self._turn, self._shared.lock():
                port, free = self._nic_ports[way], self._shared.vector
                port.free = float(free[way])
                yield port
                free[way] = port.free


def emulate(comm, network: Network) -> EmulatedNetwork:
    """Return the emulated network as the rank of `comm` sees it. Called by every rank, before the clock starts.

    Raises ValueError if a NIC's ranks are on several computers, which cannot share its ports.
    """
    mates = comm.split(network.nic(comm.rank))
    if mates.size == 1:
        return EmulatedNetwork(network, comm.rank)
    if len({comm._state.computers[member] for member in mates.members}) > 1:
        ranks = ", ".join(map(str, mates.members))
        raise ValueError(
            f"per_node: ranks {ranks} would share a port but run on several computers; "
            "let per_node divide the ranks of each computer."
        )
    return EmulatedNetwork(network, comm.rank, mates.shared(np.zeros(2), guard="locked"))


def sleep_until(moment: float) -> None:
    """Sleep until this time of the machine's monotonic clock, if it is still to come."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
