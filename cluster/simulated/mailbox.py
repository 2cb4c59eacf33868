"""Messages of the simulated cluster, in flight and waiting to be received."""

from __future__ import annotations

from collections import Counter, deque
from operator import attrgetter
from typing import TYPE_CHECKING

from cluster.comm import Message
from cluster.simulated.event_queue import EventQueue

if TYPE_CHECKING:
    from cluster.simulated.actor import Actor
    from cluster.simulated.ports import Route
    from cluster.simulated.rank import Rank

ARRIVED = attrgetter("arrived")


class Delivery:
    """A message in flight: the event at which its first byte reaches the receiver's port. Created by `delivery`."""

    __slots__ = ("arrived", "key", "nbytes", "payload", "route", "sent")
    arrived: float  # s, when its last byte is there
    key: tuple  # (group, tag)
    nbytes: int
    payload: Message
    route: Route
    sent: float  # s

    def happen(self, time: float) -> Actor | None:
        """Receive the message through the port, unless its sender crashed before sending it. Return the actor that
        waited for it, if there is one.
        """
        route, sent, nbytes, tag = self.route, self.sent, self.nbytes, self.key[1]
        sender, receiver, port = route.sender, route.receiver, route.into
        sender.in_flight -= 1
        if sent > sender.lost_at:
            return None  # the sender crashed before it sent this
        port.carry(time, nbytes * route.beta)
        self.arrived = arrived = port.free
        sender.event_log.messages.append((receiver.number, tag, nbytes, sent, arrived, tag < 0))
        return receiver.mailbox.put(self)


def delivery(route: Route, key: tuple, nbytes: int, sent: float, payload: Message) -> Delivery:
    """Return the delivery of a message of `nbytes` bytes that is sent at time `sent`; `key` is (group, tag).

    A function, since calling a class with an __init__ takes 0.1 us longer, which is 3 % of the time of a message.
    """
    message = Delivery()
    message.route, message.key, message.nbytes = route, key, nbytes
    message.sent, message.payload = sent, payload
    return message


class Channel:
    """The messages with one key that have not been received yet, and the actor that waits for one."""

    __slots__ = ("key", "messages", "receiver")

    def __init__(self, key: tuple):
        self.key = key
        self.messages: deque[Delivery] = deque()
        self.receiver: Actor | None = None

    def earliest(self) -> Delivery | None:
        """Return the message that arrives first, without removing it, or None if there is none."""
        messages = self.messages
        if len(messages) < 2:
            return messages[0] if messages else None
        return min(messages, key=ARRIVED)


class Mailbox:
    """The channels of one rank, by key (group, tag), and the lost ranks that it knows of."""

    def __init__(self, queue: EventQueue, lost: dict[int, Rank]):
        self._queue = queue
        self._channels: dict[tuple, Channel] = {}
        self.lost = lost  # by world rank

    def put(self, message: Delivery) -> Actor | None:
        """Hand the message to the actor that waits for its sender and return that actor, or else store the message.

        An actor that waits for any rank is woken once the stored message is complete.
        """
        channel = self._channels.get(message.key) or self.channel(message.key)
        receiver = channel.receiver
        if receiver is not None:
            if receiver.source == message.route.src:
                channel.receiver = None
                receiver.inbox = message
                return receiver
            if receiver.source is None:  # it accepts any message: wake it when this one is complete
                channel.receiver = None
                self._queue.push(message.arrived, receiver)
        channel.messages.append(message)
        return None

    def get(self, key: tuple, actor: Actor, src: int, members: list[int]) -> Delivery | None:
        """Remove and return the next message from `src`, for which `actor` waits.

        `src` is an index into the world ranks `members`. Return None if that rank is lost and left no message. Raise
        ValueError if there is no such rank.
        """
        channel = self._channels.get(key) or self.channel(key)
        messages = channel.messages
        if messages:
            if messages[0].route.src == src:
                return messages.popleft()
            for i, message in enumerate(messages):
                if message.route.src == src:
                    del messages[i]
                    return message
        if not 0 <= src < len(members):
            raise ValueError(f"there is no rank {src}; ranks are 0 to {len(members) - 1}.")
        world = members[src]
        if world in self.lost:
            return None
        self.wait(channel, actor, src, world)
        return actor.inbox

    def channel(self, key: tuple) -> Channel:
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = Channel(key)
        return channel

    def wait(self, channel: Channel, actor: Actor, source: int | None = None, world: int | None = None) -> None:
        """Block `actor` until a message from `source` (None: any rank) arrives or that rank is reported lost.

        `world` is the world rank of `source`. Raise ValueError if another actor of this rank already waits for this
        key.
        """
        if channel.receiver is not None:
            raise ValueError(
                f"rank {actor.rank.number} has two receives waiting for tag {channel.key[1]} at the same time; wait "
                "for the first, or use different tags."
            )
        channel.receiver = actor
        actor.source, actor.source_world, actor.blocked_since = source, world, actor.now
        self._queue.wait(actor)

    def ready_senders(self, key: tuple, time: float) -> list[int]:
        """Return the senders of the messages that are complete at `time`, earliest first."""
        channel = self._channels.get(key)
        messages = sorted(channel.messages, key=ARRIVED) if channel else ()
        return [message.route.src for message in messages if message.arrived <= time]

    def waiting(self) -> list[tuple[int, Actor]]:
        """Return (tag, actor) for each actor that waits for a message, the longest wait first."""
        found = [(key[1], channel.receiver) for key, channel in self._channels.items() if channel.receiver]
        return sorted(found, key=lambda wait: wait[1].blocked_since)

    def report(self, lost: Rank) -> None:
        """Report the loss to this rank, and wake its actors that wait for the lost rank or for any rank."""
        self.lost[lost.number] = lost
        woken = [actor for _, actor in self.waiting() if actor.source_world in (None, lost.number)]
        for channel in self._channels.values():
            if channel.receiver in woken:
                channel.receiver = None
        for actor in woken:
            actor.inbox = None
            self._queue.push(self._queue.now, actor)

    def unread(self, number: int) -> list[str]:
        """Return one sentence per sender and tag about the messages that rank `number` never received."""
        counts = Counter((m.route.src, tag) for (_, tag), channel in self._channels.items() for m in channel.messages)
        return [
            f"rank {number} never read {n} message{'s' if n > 1 else ''} from rank {src}, tag {tag}"
            for (src, tag), n in sorted(counts.items())
        ]
