"""Communicators of a run in which ranks restart: they choose the incarnation of a rank to which a message goes.

A reply goes to the incarnation that sent the request, as over a connection. Any other message goes to the incarnation
that is up when it is sent. A message to an incarnation that has crashed stays in a mailbox that is never read.
"""

from dataclasses import replace

from cluster.comm import Message
from cluster.simulated.comm import SimulatedComm
from cluster.simulated.mailbox import Delivery
from cluster.simulated.rank import Rank


class RestartableComm(SimulatedComm):
    """A communicator that distinguishes the incarnations of a rank.

    A message counts as a reply if its sender has received a message from that rank since it last sent one to it.
    """

    def __init__(self, *args):
        super().__init__(*args)
        self._requested: dict[int, Rank | None] = {}  # by rank, the incarnation that waits for a reply

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        route = self._route(dst)
        self._sim.queue.sync(self._actor)  # to know which incarnation is up at this time
        receiver = self._requested.get(dst) or self._sim.ranks[self.members[dst]]
        self._routes[dst] = replace(route, receiver=receiver)
        super().send(x, dst, tag)
        self._requested.pop(dst, None)  # answered, unless the message was refused

    def _finish_receive(self, message: Delivery) -> Message:
        rank = self._sim.ranks[self.members[message.route.src]]
        self._requested[message.route.src] = rank if message.sent >= rank.born else rank.previous
        return super()._finish_receive(message)
