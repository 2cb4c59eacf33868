"""Emulated networks on real ranks: a message becomes visible when the emulated network would have delivered it.

    sender      `leave`   overhead, outgoing port, latency: gives the time at which the first byte reaches the
                          receiver's port, which the frame carries
    receiver    `enter`   incoming port: gives the time at which the last byte is in; `Links` hold the message until
                          then

Links and ports are those of `cluster.network`, as on the simulated cluster. Ranks that use the same NIC share its two
ports through shared memory. If the real network is slower than the emulated one, messages arrive later by that much.
Times are in seconds on the run's clock.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import numpy as np

from cluster.network import Network, Port
from cluster.real.memory import MappedVector

OUT, INTO = 0, 1


class EmulatedNetwork:
    """The emulated network as one rank sees it: its links, its own ports, and those of its NIC.

    If several ranks use the NIC, `shared` has the times at which its two ports become free.
    """

    def __init__(self, network: Network, rank: int, shared: MappedVector | None = None):
        self._network, self._rank, self._shared = network, rank, shared
        self._nic_ports, self._own_ports = (Port(), Port()), (Port(), Port())
        self._turn = Lock()  # since all-reduces in the background send too
        self.shares_port = shared is not None

    @property
    def descriptor(self) -> int:
        """This process's file descriptor for the memory with the NIC's ports, or -1 if no other rank uses the NIC."""
        return -1 if self._shared is None else self._shared.descriptor

    def overhead(self, dst: int) -> float:
        """Return how long a message to `dst` occupies this rank's processor, in s."""
        return self._network.link(self._rank, dst).overhead

    def leave(self, dst: int, nbytes: int, sent: float) -> tuple[float, float]:
        """Pass a message to `dst` through this rank's port. Return when it has left that port, and when its first byte
        reaches the receiver's port, in s.
        """
        link = self._network.link(self._rank, dst)
        with self._port(dst, OUT) as port:
            leaves = port.carry(sent + link.overhead, nbytes / link.bandwidth)
            return port.free, leaves + link.latency

    def enter(self, src: int, nbytes: int, reaches: float) -> float:
        """Pass a message from `src`, whose first byte arrives at `reaches`, through this rank's port. Return when its
        last byte has passed, in s.
        """
        with self._port(src, INTO) as port:
            port.carry(reaches, nbytes / self._network.link(src, self._rank).bandwidth)
            return port.free

    @contextmanager
    def _port(self, other: int, way: int) -> Iterator[Port]:
        """Yield the port through which messages to or from rank `other` pass, while holding the port's lock."""
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
    """Return the emulated network as the rank of `comm` sees it. Every rank must call this before the clock starts.

    Raise ValueError if the ranks of a NIC are on several computers, which cannot share its ports.
    """
    mates = comm.split(network.nic(comm.rank))
    if mates.size == 1:
        return EmulatedNetwork(network, comm.rank)
    if len({comm._state.computers[member] for member in mates.members}) > 1:
        ranks = ", ".join(map(str, mates.members))
        raise ValueError(
            f"per_node: ranks {ranks} would share a port but run on several computers; choose a per_node that divides "
            "the number of ranks on each computer."
        )
    return EmulatedNetwork(network, comm.rank, mates.shared(np.zeros(2), guard="locked"))


def sleep_until(moment: float) -> None:
    """Sleep until this time of the machine's monotonic clock, unless it has passed."""
    left = moment - time.monotonic()
    if left > 0:
        time.sleep(left)
