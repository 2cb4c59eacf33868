"""Messages of the simulated cluster: on their way, and waiting to be received."""

from __future__ import annotations

from collections import Counter, deque
from operator import attrgetter
from typing import TYPE_CHECKING

from cluster.comm import Message
from cluster.simulated.event_queue import EventQueue

if TYPE_CHECKING:
    from cluster.simulated.ports import Route
    from cluster.simulated.rank import Actor, Rank

ARRIVED = attrgetter("arrived")


class Delivery:
    """A message on its way: the event at which its first byte reaches the receiver's port.

    `key` is (group, tag), `sent` and `arrived` are the times of the first and the last byte.
    """

    __slots__ = ("arrived", "key", "nbytes", "payload", "route", "sent")

    def __init__(self, route: Route, key: tuple, nbytes: int, sent: float, payload: Message):
        self.route, self.key, self.nbytes, self.sent, self.payload = route, key, nbytes, sent, payload

    def happen(self, time: float) -> Actor | None:
        """Receive the message through the port; return the actor that waited for it, if one did."""
        route, sent, nbytes, tag = self.route, self.sent, self.nbytes, self.key[1]
        sender, receiver, port = route.sender, route.receiver, route.into
        sender.in_flight -= 1
        if sent > sender.lost_at:
            return None  # the sender crashed before it sent this
        port.carry(time, nbytes * route.beta)
        self.arrived = arrived = port.free
        sender.event_log.messages.append((receiver.number, tag, nbytes, sent, arrived, tag < 0))
        return receiver.mailbox.put(self)


class Mailbox:
    """Messages that a rank has not received yet, and its actors that wait for one; both by key, (group, tag)."""

    def __init__(self, queue: EventQueue, lost: dict[int, Rank]):
        self._queue = queue
        self.lost = lost  # by world rank, the ranks of whose loss this one knows
        self._messages: dict[tuple, deque[Delivery]] = {}
        self.receivers: dict[tuple, Actor] = {}

    def put(self, message: Delivery) -> Actor | None:
        """Hand the message to the actor that waits for its sender and return that actor, else keep the message."""
        key = message.key
        receiver = self.receivers.get(key)
        if receiver is not None and receiver.source == message.route.src:
            del self.receivers[key]
            receiver.inbox = message
            return receiver
        box = self._messages.get(key)
        if box is None:
            box = self._messages[key] = deque()
        box.append(message)
        if receiver is not None and receiver.source is None:  # it takes any message: wake it when this one is complete
            del self.receivers[key]
            self._queue.push(message.arrived, receiver)
        return None

    def get(self, key: tuple, actor: Actor, src: int, world: int) -> Delivery | None:
        """Remove and return the next message from `src`, world rank `world`: `actor` waits for it.

        Return None if that rank is lost and has left no message.
        """
        box = self._messages.get(key)
        if box:
            for i, message in enumerate(box):
                if message.route.src == src:
                    del box[i]
                    return message
        if world in self.lost:
            return None
        self.wait(key, actor, src, world)
        return actor.inbox

    def earliest(self, key: tuple) -> Delivery | None:
        """Return, but do not remove, the message that arrived first."""
        box = self._messages.get(key)
        return min(box, key=ARRIVED) if box else None

    def remove(self, message: Delivery) -> None:
        """Remove this message."""
        self._messages[message.key].remove(message)

    def arrived(self, key: tuple, time: float) -> list[int]:
        """Return the senders of messages that are complete at `time`, earliest first."""
        box = self._messages.get(key, ())
        return [message.route.src for message in sorted(box, key=ARRIVED) if message.arrived <= time]

    def wait(self, key: tuple, actor: Actor, source: int | None, world: int | None) -> None:
        """Let `actor` wait for a message from `source`, world rank `world` (None: any), or for the report of its loss.

        Raises ValueError if another actor of this rank waits for the same key.
        """
        if key in self.receivers:
            raise ValueError(f"two receives wait for tag {key[1]} at once on rank {actor.rank.number}")
        self.receivers[key] = actor
        actor.source, actor.source_world, actor.blocked_since = source, world, actor.now
        self._queue.wait(actor)

    def report(self, lost: Rank) -> None:
        """Let this rank know of the loss, and wake its actors that wait for the lost rank, or for any."""
        self.lost[lost.number] = lost
        for key, actor in list(self.receivers.items()):
            if actor.source_world in (None, lost.number):
                del self.receivers[key]
                actor.inbox = None
                self._queue.push(self._queue.now, actor)

    def unread(self, number: int) -> list[str]:
        """Return a sentence per sender and tag for the messages that rank `number` never received."""
        counts = Counter((message.route.src, tag) for (_, tag), box in self._messages.items() for message in box)
        return [
            f"rank {number} never read {n} message{'s' if n > 1 else ''} from rank {src}, tag {tag}"
            for (src, tag), n in sorted(counts.items())
        ]
