"""Links: an ordered stream of messages between every two ranks.

    send ──▶ socket ──▶ a thread of the receiver ──▶ box (group, tag) ──▶ recv, recv_any, poll

A thread per peer reads, so a message arrives while its receiver computes. What the operating system does not take at
once is copied and leaves through a thread of its own, so a sender never waits for a receiver.

Why not torch.distributed's send and recv: over gloo they must know sizes beforehand, cannot say what has arrived, and
a receive that is given up breaks the pair.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
import time
from collections.abc import Callable, Hashable, Iterable
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

from cluster.real.frames import WHOLE, Inlet, Outlet, pack, unpack

OPEN, DONE, LOST = "open", "done", "lost"
FOREVER = 3600.0  # s; a condition cannot wait for infinity

_HELLO = struct.Struct("<16sI")  # the receiver's token, the sender's rank


class Parcel(NamedTuple):
    """A message that has arrived; times are of the machine's monotonic clock."""

    src: int
    sent: float
    arrived: float
    x: Any


class Slot:
    """A place that the next message of a channel from `src` (None: from anybody) goes to."""

    __slots__ = ("channel", "parcel", "src")

    def __init__(self, src: int | None, channel: Hashable):
        self.src, self.channel, self.parcel = src, channel, None


class Gone(Exception):
    """Whoever could have sent the awaited message cannot any more; `lost` are those that did not say goodbye."""

    def __init__(self, lost: list[int]):
        self.lost = lost


class Door:
    """Where a rank lets the others in; `address` is what it tells them."""

    def __init__(self, host: str):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.token = secrets.token_bytes(16)
        self.listener = socket.create_server((host, 0), backlog=4096, family=family)
        self.address = (host, self.listener.getsockname()[1], self.token)

    def meet(self, rank: int, addresses: list[tuple], timeout: float) -> dict[int, socket.socket]:
        """A socket to every other rank: this one calls those below it and is called by those above."""
        deadline = time.monotonic() + timeout
        sockets = {}
        for peer, (host, port, token) in enumerate(addresses[:rank]):
            sockets[peer] = socket.create_connection((host, port), timeout)
            sockets[peer].sendall(_HELLO.pack(token, rank))
        with self.listener as listener:
            while len(sockets) < len(addresses) - 1:
                listener.settimeout(max(0.001, deadline - time.monotonic()))
                caller, _ = listener.accept()
                caller.settimeout(5.0)
                try:
                    token, peer = _HELLO.unpack(caller.recv(_HELLO.size, WHOLE))
                except (OSError, struct.error):
                    token, peer = b"", -1
                if not secrets.compare_digest(token, self.token):
                    caller.close()  # a stranger
                    continue
                sockets[peer] = caller
        for link in sockets.values():
            link.settimeout(None)
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sockets


class Links:
    """All streams of one rank. Ranks are those of the whole run; a channel is a group and a tag.

    `on_arrival(src, row, arrived)` hears of every message that has a row in its sender's event log; `device` is where
    torch tensors go.
    """

    def __init__(self, rank: int, sockets: dict[int, socket.socket], on_arrival: Callable[[int, int, float], None]):
        self.rank, self.device, self._on_arrival = rank, "cpu", on_arrival
        self.state = dict.fromkeys((rank, *sockets), OPEN)
        self.news = Condition(Lock())
        self._received = dict.fromkeys(sockets, 0)  # frames
        self._told: set[tuple] = set()  # (channel, lost rank): its last None has been heard there
        self._boxes: dict[Hashable, list[Parcel]] = {}
        self._slots: dict[Hashable, list[Slot]] = {}
        self._sockets = sockets
        self._out = {peer: Outlet(link) for peer, link in sockets.items()}
        for peer, link in sockets.items():
            Thread(target=self._read, args=(peer, Inlet(link)), daemon=True, name=f"from rank {peer}").start()

    @property
    def sent(self) -> int:
        """Frames that have been handed over to ranks that are not lost."""
        return sum(outlet.frames for peer, outlet in self._out.items() if self.state[peer] != LOST)

    @property
    def received(self) -> int:
        """Frames that have come from ranks that are not lost."""
        return sum(frames for peer, frames in self._received.items() if self.state[peer] != LOST)

    def send(self, dst: int, channel: Hashable, x: Any, sent: float, row: int = -1) -> int:
        """Hand a copy of `x` over; gives a ticket for `flush`. Nobody hears what is sent to a lost rank."""
        arrays: list = []
        packed = pack(x, arrays)
        if dst != self.rank:
            return self._out[dst].send(channel, packed, arrays, sent, row)
        copies = iter([array.copy() for array in arrays])
        x = unpack(packed, lambda *_: next(copies), self.device)
        self._deliver(channel, Parcel(dst, sent, time.monotonic(), x), row)
        return 0

    def flush(self, dst: int, ticket: int) -> None:
        """Wait until what was given this ticket has left."""
        if dst != self.rank:
            self._out[dst].flush(ticket)

    def slot(self, src: int | None, channel: Hashable) -> Slot:
        """Ask for the earliest message from `src`, or from anybody; slots are filled in the order they were made."""
        slot = Slot(src, channel)
        with self.news:
            box = self._boxes.get(channel, ())
            for i, parcel in enumerate(box):
                if src is None or parcel.src == src:
                    slot.parcel = box.pop(i)
                    return slot
            self._slots.setdefault(channel, []).append(slot)
        return slot

    def wait(self, slot: Slot, senders: Iterable[int], timeout: float) -> bool:
        """Block until the slot is filled; False if it takes longer than `timeout` seconds.

        A slot for anybody's message is filled with None, once for each of `senders` that is lost. Raises Gone if none
        of them is there any more.
        """
        deadline = time.monotonic() + timeout
        with self.news:
            while slot.parcel is None:
                if slot.src is None and (silent := self._silent(slot.channel, senders)):
                    self._told.add((slot.channel, silent[0]))
                    self._slots[slot.channel].remove(slot)
                    slot.parcel = Parcel(silent[0], time.monotonic(), time.monotonic(), None)
                    break
                if all(self.state[peer] != OPEN for peer in senders):
                    raise Gone([peer for peer in senders if self.state[peer] == LOST])
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.news.wait(min(left, FOREVER))
        return True

    def arrived(self, channel: Hashable, senders: Iterable[int]) -> list[int]:
        """Who sent the messages that lie in this box, earliest first, and whose last None has not been heard."""
        with self.news:
            return [parcel.src for parcel in self._boxes.get(channel, ())] + self._silent(channel, senders)

    def close(self) -> list[tuple[int, Hashable]]:
        """Say goodbye, wait for everybody's goodbye, and give (src, channel) of each message that nobody took."""
        for outlet in self._out.values():
            outlet.goodbye()
        with self.news:
            self.news.wait_for(lambda: all(self.state[peer] != OPEN for peer in self._out))
            return [(parcel.src, channel) for channel, box in self._boxes.items() for parcel in box]

    def hang_up(self) -> None:
        """Leave without a goodbye: the others find this rank lost, after everything it has sent."""
        for link in self._sockets.values():
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)

    def _silent(self, channel: Hashable, senders: Iterable[int]) -> list[int]:
        """The lost ones among `senders` of whom nobody has told on this channel."""
        return [peer for peer in senders if self.state[peer] == LOST and (channel, peer) not in self._told]

    def _read(self, peer: int, inlet: Inlet) -> None:
        end = LOST
        try:
            while frame := inlet.next(self.device):
                channel, x, sent, row = frame
                self._deliver(channel, Parcel(peer, sent, time.monotonic(), x), row)
            end = DONE
        except (EOFError, OSError):
            pass  # it is lost
        with self.news:
            self.state[peer] = end
            self.news.notify_all()

    def _deliver(self, channel: Hashable, parcel: Parcel, row: int) -> None:
        if row >= 0:
            self._on_arrival(parcel.src, row, parcel.arrived)
        with self.news:
            if parcel.src != self.rank:
                self._received[parcel.src] += 1
            slots = self._slots.get(channel, ())
            for i, slot in enumerate(slots):
                if slot.src is None or slot.src == parcel.src:
                    slots.pop(i).parcel = parcel
                    self.news.notify_all()
                    return
            self._boxes.setdefault(channel, []).append(parcel)
