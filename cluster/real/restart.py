"""Restarts on real ranks: links that outlive a peer's crash, and how a new process takes the place of a rank.

    crash     the others drop their messages to that rank and wait for it; it is not lost
    return    a new process connects to the Door of every rank that is up; that rank first reads what the predecessor
              had sent, then replaces the old connection with the new one
    reply     goes to the incarnation that asked, as on the simulated cluster (`cluster.simulated.restart`), or nowhere

Ranks cannot restart with torch.distributed, whose groups accept no new members.
"""

import contextlib
import math
import os
import secrets
import socket
import struct
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from cluster.devices import Device
from cluster.faults import Faults
from cluster.network import Network
from cluster.real import memory
from cluster.real.comm import RealComm
from cluster.real.emulated_compute import EmulatedCompute
from cluster.real.emulated_network import EmulatedNetwork, sleep_until
from cluster.real.event_log_stream import StreamedEventLog
from cluster.real.frames import FrameWriter, receive
from cluster.real.links import LOST, OPEN, Channel, Links, Slot, Ticket
from cluster.real.listener import Listener, ready
from cluster.real.rank_state import RankState

PATIENCE = 60.0  # s within which a rank that is up must answer at its door

_CALL = struct.Struct("<16sId")  # the token of the door, the caller's rank, the time at which its incarnation started
_WELCOME = struct.Struct("<qq")  # process and file descriptor of the memory with the NIC's ports, -1 for none


@dataclass(frozen=True)
class Past:
    """The state from which a restarted rank continues: all that the parent knew when its predecessor was lost."""

    zero: float  # the run's start on the machine's monotonic clock
    back: float  # s of the run's clock at which it should return
    step: int
    messages: int  # number of rows that its predecessor has logged
    counts: dict[str, float]  # by their names in EventLog.COUNTS


class Whereabouts(NamedTuple):
    """What a restarting rank needs to reconnect."""

    doors: dict[int, tuple]  # addresses of the ranks that are up
    awaited: frozenset[int]  # ranks that may still crash, or have crashed, and will come back


class RestartableLinks(Links):
    """The links of a rank whose peers in `awaited` may crash once and restart, while those in `lost` never restart."""

    def __init__(
        self,
        rank: int,
        sockets: dict[int, socket.socket],
        on_arrival: Callable[[int, int, float, float], None],
        awaited: Iterable[int],
        lost: Iterable[int] = (),
    ):
        self._awaited = set(awaited)
        self._born: dict[int, float] = {}  # s of the run's clock at which restarted ranks came back
        self._asked: dict[tuple, bool] = {}  # (group, rank) that waits for a reply -> whether it had restarted then
        self._turn, self._closing = Lock(), False
        super().__init__(rank, sockets, on_arrival)
        for peer in (self._awaited | set(lost)) - self.state.keys():
            self._on_the_way[peer] = self._received[peer] = 0
            self._ended[peer] = LOST
            self.state[peer] = OPEN if peer in self._awaited else LOST

    def send(self, dst: int, channel: Channel, x: Any, sent: float, row: int = -1, reaches: float = math.nan) -> Ticket:
        """Send as `Links.send` does, and return a ticket.

        Drop `x` if `dst` is down, or if `x` replies to an incarnation of `dst` that is gone.
        """
        with self._turn:
            asked = self._asked.pop((channel[0], dst), dst in self._born)
            if self._ended.get(dst) == LOST or asked != (dst in self._born):
                return None
            return super().send(dst, channel, x, sent, row, reaches)

    def note_sender(self, slot: Slot) -> None:
        """Record which incarnation of the sender waits for a reply to the message in `slot`."""
        if envelope := slot.envelope:
            came_back = self._born.get(envelope.src, math.inf)
            self._asked[slot.channel[0], envelope.src] = envelope.sent >= came_back

    def close(self) -> list[tuple[int, Channel]]:
        """End all streams as `Links.close` does, including those of ranks that still have to restart. Return the
        unreceived messages.
        """
        with self._turn:
            self._closing = True
        return super().close()

    def welcome(self, peer: int, born: float, link: socket.socket) -> None:
        """Replace `peer` by the process at the other end of `link`, which started at time `born`.

        First, wait until all data of its predecessor has been read.
        """
        ports = -1 if self.network is None else self.network.descriptor
        with self.news:
            self.news.wait_for(lambda: self._ended.get(peer) == LOST)
        with self._turn, self.news:
            del self._ended[peer]
            self._awaited.discard(peer)
            self._born[peer] = born
            self._received[peer] = -self._on_the_way[peer]  # so that messages of its predecessor do not count
            with contextlib.suppress(OSError):  # the reader will notice
                link.sendall(_WELCOME.pack(os.getpid(), ports))
            self._sockets[peer], self._out[peer] = link, FrameWriter(link)
            self._listen(peer)
            if self._closing:
                self._out[peer].end()

    def _end(self, peer: int) -> None:
        if self._ended.get(peer) == LOST and peer in self._awaited:
            self.news.notify_all()  # it will restart
        else:
            super()._end(peer)


class Door(Listener):
    """A socket that accepts the connections of restarted ranks at `address`."""

    def open(self, links: RestartableLinks) -> None:
        """Start accepting connections, in background threads."""
        Thread(target=self._attend, args=(links,), daemon=True, name="door").start()

    def _attend(self, links: RestartableLinks) -> None:
        while True:
            caller, _ = self._server.accept()
            Thread(target=self._answer, args=(links, caller), daemon=True, name="door").start()

    def _answer(self, links: RestartableLinks, caller: socket.socket) -> None:
        caller.settimeout(PATIENCE)
        try:
            token, peer, born = _CALL.unpack(receive(caller, bytearray(_CALL.size)))
        except (OSError, EOFError):
            token = b""
        if not secrets.compare_digest(token, self.token):
            caller.close()  # a stranger
            return
        ready(caller)
        links.welcome(peer, born, caller)


def enter_again(
    rank: int,
    size: int,
    exchange: Callable[[Any], Any],
    *,
    past: Past,
    collective: str,
    timeout: float,
    network: Network | None,
    device: Device | None,
    faults: Faults,
    host: str = "127.0.0.1",
    **_: Any,
) -> tuple[RealComm, None]:
    """Take the place of a lost rank at the time of its restart. Return what `cluster.real.rank.enter` returns.

    `exchange(x)` sends x, which contains the address of this rank's door, to the parent and returns the Whereabouts.
    """
    sleep_until(past.zero + past.back)
    door, place = Door(host), memory.computer()
    found: Whereabouts = exchange((None, place, False, None, door.address))
    born = time.monotonic() - past.zero
    sockets, ports = {}, {}
    for peer, address in found.doors.items():
        with contextlib.suppress(OSError, EOFError):  # that rank has just been lost too
            sockets[peer], ports[peer] = _call(address, rank, born)
    event_log = StreamedEventLog(rank)
    event_log.begin(past.zero, time.monotonic)
    event_log.go_on(past.counts, past.step, past.messages)
    others = set(range(size)) - {rank} - sockets.keys()
    links = RestartableLinks(rank, sockets, event_log.arrive, found.awaited, others - found.awaited)
    computers = [place] * size
    nodes: list[Hashable] = list(computers) if network is None else [network.node(other) for other in range(size)]
    state = RankState(rank, size, links, event_log, timeout, "cpu", False, collective, None, computers, nodes)
    if network is not None:
        nics = [network.nic(other) for other in range(size)]
        mates = [ports[peer] for peer in ports if nics[peer] == nics[rank]]
        state.network = EmulatedNetwork(network, rank, _shared_ports(mates) if nics.count(nics[rank]) > 1 else None)
        links.emulate(state.network, past.zero)
    state.compute = EmulatedCompute.create_if_needed(event_log, device, faults)
    door.open(links)
    return RealComm(state, 0, list(range(size))), None


def _call(address: tuple, rank: int, born: float) -> tuple[socket.socket, tuple[int, int]]:
    """Return a socket to the rank whose Door listens at `address`, and the (process, descriptor) of its NIC's ports.

    Raise OSError or EOFError if nobody answers.
    """
    host, port, token = address
    link = socket.create_connection((host, port), PATIENCE)
    link.sendall(_CALL.pack(token, rank, born))
    where = _WELCOME.unpack(receive(link, bytearray(_WELCOME.size)))
    ready(link)
    return link, where


def _shared_ports(mates: list[tuple[int, int]]) -> memory.MappedVector:
    """Return the shared times at which the ports of this rank's NIC become free.

    `mates` are the (process, descriptor) of the ranks on this NIC that are up; without any, the memory is new.
    """
    if mates:
        if not os.path.isdir("/proc/self/fd"):
            raise OSError("a rank that shares a NIC can only restart on a system with /proc; set per_node to 1.")
        process, number = mates[0]
        descriptor = memory.open_path(f"/proc/{process}/fd/{number}")
    else:
        descriptor, _ = memory.create(2 * 8)
    return memory.MappedVector(memory.attach(descriptor, np.zeros(2)), "locked", descriptor)
