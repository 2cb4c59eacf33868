"""Links: an ordered stream of messages between every pair of ranks.

    send ──▶ socket ──▶ reader thread of the receiver ──▶ box (group, tag) ──▶ recv, recv_any, poll

Each peer has a reader thread, so messages arrive while their receiver computes. Bytes that the operating system does
not accept at once are copied and sent by a writer thread, so a sender never waits for a receiver.

Over an emulated network, a message that has been read is held until that network would have delivered it. The thread
that looks into the box delivers what is due, so that no other thread has to wake up in time for it. A waiting rank
sleeps until shortly before delivery, then spins; the margin is this machine's typical wake-up latency.

torch.distributed's send and recv over gloo cannot be used: sizes must be known in advance, arrived messages cannot be
listed, and an abandoned receive breaks the pair.
"""

import contextlib
import heapq
import math
import socket
import time
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from itertools import count
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple

from cluster.comm import nbytes
from cluster.real.emulated_network import EmulatedNetwork
from cluster.real.frames import FrameReader, FrameWriter, Unreadable, pack, unpack

OPEN, DONE, LOST = "open", "done", "lost"
FOREVER = 3600.0  # s; a condition cannot wait for infinity
LAG = 2e-4  # s by which a computing rank may be late to pass a message through a port that its node's ranks share
LEAD, MOST_LEAD, STEP = 5e-5, 1e-4, 2e-6  # s by which a waiting rank wakes early: initial, largest, and adjustment


class Envelope(NamedTuple):
    """A message that has arrived."""

    src: int
    sent: float  # s of the run's clock; for the None of a lost rank, later than any time of that clock
    arrived: float  # s of the machine's monotonic clock
    x: Any


Channel = tuple[Hashable, Any]  # (group, tag)
Ticket = tuple[FrameWriter, int] | None  # of a message that was sent, to wait until it has left; None: it has


class Slot:
    """A posted receive: the place for the next message of a channel from `src` (None: from any rank)."""

    __slots__ = ("channel", "envelope", "src")

    def __init__(self, src: int | None, channel: Channel):
        self.src, self.channel = src, channel
        self.envelope: Envelope | None = None


class PeersGone(Exception):
    """Raised when no rank that could send the awaited message is connected any more.

    `lost` are the ranks that closed without an end of stream. `unreadable` says what was wrong with the data of the
    first one; it is "" if its connection just closed.
    """

    def __init__(self, lost: list[int], unreadable: str = ""):
        self.lost, self.unreadable = lost, unreadable


class Links:
    """All streams of one rank. Ranks are world ranks; a channel is (group, tag).

    `on_arrival(src, row, arrived, overdue)` is called for every message with a row in its sender's event log; `overdue`
    is the number of seconds by which it arrived later than over the emulated network. Torch tensors are received on
    `device`.
    """

    def __init__(
        self,
        rank: int,
        sockets: dict[int, socket.socket],
        on_arrival: Callable[[int, int, float, float], None],
        device: str = "cpu",
    ):
        self.rank, self.device, self._on_arrival = rank, device, on_arrival
        self.network: EmulatedNetwork | None = None
        self._patience, self._lead = 0.0, LEAD
        self._zero = math.nan  # the run's start on the machine's monotonic clock, with an emulated network
        self._held: list[tuple[float, int, Callable]] = []  # heap of (s of the run's clock, serial number, event)
        self._serial = count().__next__
        self._on_the_way = dict.fromkeys(sockets, 0)  # number of held messages of each sender
        self._ended: dict[int, str] = {}  # peers that send no more, and their state once no message of them is held
        self.state = dict.fromkeys((rank, *sockets), OPEN)
        self.news = Condition(Lock())
        self._received = dict.fromkeys(sockets, 0)  # frames
        self._unreadable: dict[int, str] = {}  # lost peers that sent an invalid frame, and what was wrong with it
        self._reported: set[tuple] = set()  # (channel, lost rank) that recv_any has returned
        self._boxes: dict[Channel, list[Envelope]] = {}
        self._slots: dict[Channel, list[Slot]] = {}
        self._sockets = sockets
        self._out = {peer: FrameWriter(link) for peer, link in sockets.items()}
        for peer in sockets:
            self._listen(peer)

    @property
    def frames_sent(self) -> int:
        """The number of frames sent to ranks that are not lost."""
        return sum(writer.frames for peer, writer in self._out.items() if self.state[peer] != LOST)

    @property
    def frames_received(self) -> int:
        """The number of frames received from ranks that are not lost."""
        return sum(frames for peer, frames in self._received.items() if self.state[peer] != LOST)

    def emulate(self, network: EmulatedNetwork, zero: float, patience: float = 0.0) -> None:
        """From now on, hold back each timestamped message until the moment at which `network` would deliver it.

        The run began at `zero` on the monotonic clock. A message that is read less than `patience` seconds late counts
        as having arrived on time.
        """
        with self.news:
            self.network, self._zero, self._patience = network, zero, patience
            self.news.notify_all()
        if network.shares_port:
            Thread(target=self._keep_up, daemon=True, name="port").start()

    def send(self, dst: int, channel: Channel, x: Any, sent: float, row: int = -1, reaches: float = math.nan) -> Ticket:
        """Send a copy of `x` without blocking and return a ticket for `flush`. Messages to a lost rank are dropped.

        `reaches` is the time at which, over an emulated network, the first byte reaches the receiver's port.
        """
        arrays: list = []
        packed = pack(x, arrays)
        if dst != self.rank:
            writer = self._out[dst]
            return writer, writer.send(channel, packed, arrays, sent, row, reaches)
        copies = iter([array.copy() for array in arrays])
        x = unpack(packed, lambda *_: next(copies), self.device)
        with self.news:
            self._deliver(channel, Envelope(dst, sent, time.monotonic(), x), row)
        return None

    def flush(self, ticket: Ticket) -> None:
        """Wait until the message with this ticket has left."""
        if ticket:
            writer, number = ticket
            writer.flush(number)

    def note_sender(self, slot: Slot) -> None:
        """Do nothing. Called when the message in `slot` has been received; `RestartableLinks` overrides it."""

    def slot(self, src: int | None, channel: Channel) -> Slot:
        """Post a receive from `src` (None: from any rank) and return its slot. Slots are filled in the order of
        posting.
        """
        slot = Slot(src, channel)
        with self.news:
            self._advance()
            box = self._boxes.get(channel, [])
            for i, envelope in enumerate(box):
                if src is None or envelope.src == src:
                    slot.envelope = box.pop(i)
                    return slot
            self._slots.setdefault(channel, []).append(slot)
        return slot

    def wait(self, slot: Slot, senders: Iterable[int], timeout: float) -> bool:
        """Block until the slot is filled, and return True, or return False after `timeout` seconds.

        A slot for any rank is filled with None once for each of `senders` that is lost. Raise PeersGone if none of
        `senders` is connected any more.
        """
        deadline = time.monotonic() + timeout
        with self.news:
            while True:
                next_due = self._advance()
                if slot.envelope is not None:
                    break
                if slot.src is None and (silent := self._unreported(slot.channel, senders)):
                    self._reported.add((slot.channel, silent[0]))
                    self._slots[slot.channel].remove(slot)
                    # the machine's clock is ahead of the run's, so this is later than any message
                    now = time.monotonic()
                    slot.envelope = Envelope(silent[0], now, now, None)
                    break
                if all(self.state[peer] != OPEN for peer in senders):
                    lost = [peer for peer in senders if self.state[peer] == LOST]
                    raise PeersGone(lost, self._unreadable.get(lost[0], "") if lost else "")
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                if left < next_due:
                    self.news.wait(left)
                else:
                    self._await(next_due)
        return True

    def withdraw(self, slot: Slot) -> None:
        """Withdraw a receive that has failed, so that the next message goes to the next receive."""
        with self.news:
            if self.is_pending(slot):
                self._slots[slot.channel].remove(slot)

    def ready_senders(self, channel: Channel, senders: Iterable[int]) -> list[int]:
        """Return the senders of messages not yet received, earliest first, then lost ranks not yet reported."""
        with self.news:
            self._advance()
            return [envelope.src for envelope in self._boxes.get(channel, ())] + self._unreported(channel, senders)

    def close(self) -> list[tuple[int, Channel]]:
        """End all streams and wait until the others end theirs. Return (src, channel) of each unreceived message."""
        for writer in list(self._out.values()):
            writer.end()
        with self.news:
            while True:
                next_due = self._advance()
                if all(self.state[peer] != OPEN for peer in self._received):
                    break
                self._await(next_due)
            return [(envelope.src, channel) for channel, box in self._boxes.items() for envelope in box]

    def abort(self) -> None:
        """Close without an end of stream. The other ranks receive what was sent before, then find this rank lost."""
        for link in self._sockets.values():
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_WR)
        for writer in list(self._out.values()):
            writer.stop()

    def _unreported(self, channel: Channel, senders: Iterable[int]) -> list[int]:
        """Return the lost ranks among `senders` that recv_any has not returned on this channel."""
        return [peer for peer in senders if self.state[peer] == LOST and (channel, peer) not in self._reported]

    def _listen(self, peer: int) -> None:
        """Start the thread that reads what `peer` sends."""
        reader = FrameReader(self._sockets[peer])
        Thread(target=self._read, args=(peer, reader), daemon=True, name=f"from rank {peer}").start()

    def _read(self, peer: int, reader: FrameReader) -> None:
        end = LOST
        try:
            while frame := reader.next(self.device):
                channel, x, sent, row, reaches = frame
                envelope = Envelope(peer, sent, time.monotonic(), x)
                with self.news:
                    if math.isnan(reaches):
                        self._deliver(channel, envelope, row)
                    else:
                        self._on_the_way[peer] += 1
                        self._hold(reaches, partial(self._enter, channel, envelope, row))
            end = DONE
        except (EOFError, OSError):
            pass  # the peer is lost
        except Unreadable as error:
            self._unreadable[peer] = str(error)
        with self.news:
            self._ended[peer] = end
            self._end(peer)

    # the methods below are called with `news` held

    def is_pending(self, slot: Slot) -> bool:
        """Return whether this receive is still waiting for its message."""
        return slot in self._slots.get(slot.channel, ())

    def _deliver(self, channel: Channel, envelope: Envelope, row: int, overdue: float = 0.0) -> None:
        if row >= 0:
            self._on_arrival(envelope.src, row, envelope.arrived, overdue)
        if envelope.src != self.rank:
            self._received[envelope.src] += 1
        slots = self._slots.get(channel, [])
        for i, slot in enumerate(slots):
            if slot.src is None or slot.src == envelope.src:
                slots.pop(i).envelope = envelope
                self.news.notify_all()
                return
        self._boxes.setdefault(channel, []).append(envelope)

    def _end(self, peer: int) -> None:
        """Mark a peer that will send no more as done or lost, once all of its messages have arrived."""
        if peer in self._ended and not self._on_the_way[peer]:
            self.state[peer] = self._ended[peer]
            self.news.notify_all()

    def _hold(self, due: float, event: Callable[[float], None]) -> None:
        """Schedule `event(due)` for the time `due` on the run's clock."""
        heapq.heappush(self._held, (due, self._serial(), event))
        if self._held[0][2] is event:
            self.news.notify_all()  # it comes first, so waiting threads must wake earlier

    def _advance(self) -> float:
        """Process all events that are due. Return the seconds until the next one, or FOREVER if there is none."""
        while self._held and self.network:
            left = self._held[0][0] + self._zero - time.monotonic()
            if left > 0:
                return min(left, FOREVER)
            due, _, event = heapq.heappop(self._held)
            event(due)
        return FOREVER

    def _await(self, seconds: float) -> None:
        """Wait for news, for at most `seconds`, after which the next event is due.

        A sleeping thread wakes up tens of microseconds late, more on some machines than on others. Its sleep is
        therefore cut short by the median of this delay, which is tracked in small steps; then it watches the clock.
        """
        began, nap = time.monotonic(), seconds - self._lead
        if nap <= 0:
            while time.monotonic() < began + seconds:
                pass
        elif not self.news.wait(nap):
            late = time.monotonic() - began - nap
            self._lead = min(max(self._lead + math.copysign(STEP, late - self._lead), 0.0), MOST_LEAD)

    def _enter(self, channel: Channel, envelope: Envelope, row: int, reaches: float) -> None:
        """Pass a message through this rank's port, once its first byte has reached the port."""
        assert self.network  # without one no event is due
        arrives = self.network.enter(envelope.src, nbytes(envelope.x), reaches)
        self._hold(arrives, partial(self._arrive, channel, envelope, row))

    def _arrive(self, channel: Channel, envelope: Envelope, row: int, arrives: float) -> None:
        due = arrives + self._zero
        arrived = envelope.arrived if envelope.arrived > due + self._patience else due
        self._deliver(channel, envelope._replace(arrived=arrived), row, arrived - due)
        self._on_the_way[envelope.src] -= 1
        self._end(envelope.src)

    def _keep_up(self) -> None:
        """Pass messages through a shared port in the order in which they reach it, even while this rank computes."""
        with self.news:
            while any(self.state[peer] == OPEN for peer in self._out):
                self.news.wait(self._advance() + LAG)
