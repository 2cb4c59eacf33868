"""The Comm of a run in which a rank comes back: who it is that a message goes to.

A life of a rank is a Rank. An answer goes to the life that asked, as over a connection; anything else goes to the life
that there is when it is sent. What goes to a life that is over lies in a mailbox that nobody opens.
"""

from __future__ import annotations

from cluster.comm import Message
from cluster.simulated.comm import SimulatedComm
from cluster.simulated.rank import Rank


class RestartableComm(SimulatedComm):
    """A message is an answer if the sender has taken one of that rank's since it last sent it anything."""

    def __init__(self, *args):
        super().__init__(*args)
        self._asked: dict[int, Rank] = {}  # by rank, the life that waits for an answer

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        _, *way = self._route(dst)
        self._sim.sync(self._actor)  # who there is at this time
        self._routes[dst] = (self._asked.pop(dst, None) or self._sim.ranks[self.members[dst]], *way)
        super().send(x, dst, tag)

    def _arrived(self, entry: tuple) -> Message:
        _, src, _, sent = entry
        life = self._sim.ranks[self.members[src]]
        self._asked[src] = life if sent >= life.born else life.former
        return super()._arrived(entry)
