"""Links: an ordered stream of messages between every two ranks.

    send ──▶ socket ──▶ a thread of the receiver ──▶ box (group, tag) ──▶ recv, recv_any, poll

A frame is a header (sizes, when it was sent, its row in the sender's journal), everything of the message but its
arrays as a pickle, then the bytes of the arrays, read from and into their own memory. A thread per peer reads, so a
message arrives while its receiver computes. What the operating system does not take at once is copied and leaves
through a thread of its own, so a sender never waits for a receiver.

Why not torch.distributed's send and recv: over gloo they must know sizes beforehand, cannot say what has arrived, and
a receive that is given up breaks the pair. Frames over TCP need none of that and are quicker.
"""

from __future__ import annotations

import contextlib
import pickle
import secrets
import socket
import struct
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

import numpy as np

FOREVER = 3600.0  # s; conditions cannot wait for infinity
OPEN, DONE, LOST = "open", "done", "lost"

_HEADER = struct.Struct("<IIdq")  # arrays, bytes of the pickle (0: nothing more will come), sent, row
_HELLO = struct.Struct("<16sI")  # the receiver's token, the sender's rank
_AT_ONCE = getattr(socket, "MSG_DONTWAIT", None)
_WHOLE = getattr(socket, "MSG_WAITALL", 0)


class Parcel(NamedTuple):
    """A message that has arrived; times are of the machine's monotonic clock."""

    src: int
    sent: float
    arrived: float
    x: Any


class Slot:
    """A place that the next message from `src` (None: from anybody) goes to."""

    __slots__ = ("parcel", "src")

    def __init__(self, src: int | None):
        self.src, self.parcel = src, None


class Gone(Exception):
    """Whoever could have sent the awaited message cannot any more; `lost` are those that did not say goodbye."""

    def __init__(self, lost: list[int]):
        self.lost = lost


class Door:
    """Where a rank lets the others in; `address` is what it tells them."""

    def __init__(self, host: str):
        self.token = secrets.token_bytes(16)
        self.listener = socket.create_server((host, 0), backlog=4096, family=_family(host))
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
                    token, peer = _HELLO.unpack(_exactly(caller, _HELLO.size))
                except (OSError, EOFError):
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
    """All streams of one rank. Ranks are those of the whole run; a channel is a group and a tag."""

    def __init__(self, rank: int, sockets: dict[int, socket.socket], on_arrival: Callable[[int, int, float], None]):
        self.rank, self._on_arrival = rank, on_arrival
        self.state = dict.fromkeys((rank, *sockets), OPEN)
        self.sent = self.received = 0  # frames
        self.news = Condition(Lock())
        self._boxes: dict[Hashable, list[Parcel]] = {}
        self._slots: dict[Hashable, list[Slot]] = {}
        self._sockets = sockets
        self._out = {peer: _Outlet(link) for peer, link in sockets.items()}
        for peer, link in sockets.items():
            Thread(target=self._read, args=(peer, link), daemon=True, name=f"from rank {peer}").start()

    def send(self, dst: int, channel: Hashable, x: Any, sent: float, row: int = -1) -> int:
        """Hand `x` over; gives a ticket for `flush`. ConnectionError if `dst` is gone."""
        arrays: list[pickle.PickleBuffer] = []
        head = pickle.dumps((channel, x), 5, buffer_callback=arrays.append)
        if dst == self.rank:
            copies = [bytearray(array) for array in arrays]
            self._deliver(Parcel(dst, sent, time.monotonic(), pickle.loads(head, buffers=copies)[1]), channel, row)
            return 0
        raw = [array.raw() for array in arrays]
        sizes = struct.pack(f"<{len(raw)}Q", *(part.nbytes for part in raw))
        with self.news:
            self.sent += 1
        return self._out[dst].put([_HEADER.pack(len(raw), len(head), sent, row) + sizes + head, *raw])

    def flush(self, dst: int, ticket: int) -> None:
        """Wait until what was given this ticket has left."""
        if dst != self.rank:
            self._out[dst].flush(ticket)

    def slot(self, src: int | None, channel: Hashable) -> Slot:
        """Ask for the earliest message from `src`, or from anybody; slots are filled in the order they were made."""
        slot = Slot(src)
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

        Raises Gone if none of `senders` is there any more.
        """
        deadline = time.monotonic() + timeout  # may be for ever
        with self.news:
            while slot.parcel is None:
                if all(self.state[peer] != OPEN for peer in senders):
                    raise Gone([peer for peer in senders if self.state[peer] == LOST])
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.news.wait(min(left, FOREVER))
        return True

    def arrived(self, channel: Hashable) -> list[int]:
        """Who sent the messages that lie in this box, earliest first."""
        with self.news:
            return [parcel.src for parcel in self._boxes.get(channel, ())]

    def close(self) -> list[tuple[int, Hashable]]:
        """Say goodbye, wait for everybody's goodbye, and give (src, channel) of each message that nobody took."""
        for outlet in self._out.values():
            with contextlib.suppress(ConnectionError):
                outlet.put([_HEADER.pack(0, 0, 0.0, 0)])
        with self.news:
            self.news.wait_for(lambda: all(self.state[peer] != OPEN for peer in self._out))
            return [(parcel.src, channel) for channel, box in self._boxes.items() for parcel in box]

    def hang_up(self) -> None:
        """Leave without a goodbye: the others find this rank lost, after everything it has sent."""
        for link in self._sockets.values():
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)

    def _read(self, peer: int, link: socket.socket) -> None:
        end = LOST
        try:
            while True:
                arrays, length, sent, row = _HEADER.unpack(_exactly(link, _HEADER.size))
                if not length:
                    end = DONE
                    break
                rest = _exactly(link, 8 * arrays + length)
                buffers = [_exactly(link, size) for size in struct.unpack_from(f"<{arrays}Q", rest)]
                arrived = time.monotonic()
                channel, x = pickle.loads(rest[8 * arrays :], buffers=buffers)
                self._deliver(Parcel(peer, sent, arrived, x), channel, row)
        except (EOFError, OSError):
            pass  # it is lost
        with self.news:
            self.state[peer] = end
            self.news.notify_all()

    def _deliver(self, parcel: Parcel, channel: Hashable, row: int) -> None:
        if row >= 0:
            self._on_arrival(parcel.src, row, parcel.arrived)
        with self.news:
            self.received += parcel.src != self.rank
            slots = self._slots.get(channel, ())
            for i, slot in enumerate(slots):
                if slot.src is None or slot.src == parcel.src:
                    slots.pop(i).parcel = parcel
                    self.news.notify_all()
                    return
            self._boxes.setdefault(channel, []).append(parcel)


class _Outlet:
    """One way to one peer: bytes leave at once if the system takes them, else through a thread."""

    def __init__(self, link: socket.socket):
        self._link, self._turn = link, Lock()
        self._rest: SimpleQueue[bytes] = SimpleQueue()
        self._queued = self._left = 0
        self._news = Condition(Lock())

    def put(self, parts: list) -> int:
        with self._turn:
            taken = 0
            if self._left == self._queued and _AT_ONCE is not None:
                with contextlib.suppress(BlockingIOError):
                    taken = self._link.sendmsg(parts, (), _AT_ONCE)
            rest = []
            for part in parts:
                size = len(part)
                if taken < size:
                    rest.append(part[taken:])
                taken = max(0, taken - size)
            if rest:
                if not self._queued:
                    Thread(target=self._push, daemon=True).start()
                self._queued += 1
                self._rest.put(b"".join(rest))
            return self._queued

    def flush(self, ticket: int) -> None:
        with self._news:
            self._news.wait_for(lambda: self._left >= ticket)

    def _push(self) -> None:
        while True:
            with contextlib.suppress(OSError):  # the reader of this link hears of it
                self._link.sendall(self._rest.get())
            with self._news:
                self._left += 1
                self._news.notify_all()


class Helpers:
    """Threads for what goes on beside the rank: as many as are busy at once, used again."""

    def __init__(self):
        self._jobs: SimpleQueue[tuple] = SimpleQueue()
        self._lock, self._idle = Lock(), 0

    def do(self, call: Callable, *args: Any) -> Future:
        """Have `call(*args)` done; the future has its result or its exception."""
        future: Future = Future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                Thread(target=self._work, daemon=True).start()
        self._jobs.put((future, call, args))
        return future

    def _work(self) -> None:
        while True:
            future, call, args = self._jobs.get()
            try:
                future.set_result(call(*args))
            except Exception as error:
                future.set_exception(error)
            with self._lock:
                self._idle += 1


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _exactly(link: socket.socket, size: int) -> memoryview:
    """The next `size` bytes. EOFError if the stream ends before."""
    buffer = memoryview(np.empty(size, np.uint8))
    got = 0
    while got < size:
        n = link.recv_into(buffer[got:], 0, _WHOLE)
        if not n:
            raise EOFError
        got += n
    return buffer
