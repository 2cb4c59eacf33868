"""When a collective ends on each rank, and whom that rank waited for, given when each rank arrived.

The times are those of its messages, or follow from the recurrence of a ring.

A message starts when both of its ranks have arrived. Ports serve messages one after another, so overlapping collectives
share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cluster.comm import COLLECTIVE, shares
from cluster.simulated.ring_recurrence import ring_joiners, ring_times
from cluster.torch import patterns

if TYPE_CHECKING:
    from cluster.network import Link
    from cluster.torch.group import Group


class Members:
    """The members of a collective once all have joined: their groups, arrival times in s, and tensors.

    `joiners` has, for each member, the member that it waited for. Usually that is the last one to arrive. In a ring,
    ranks exchange what they have before the last one arrives, so there it is the member whose arrival decided when this
    one ended.
    """

    def __init__(self, groups: list[Group], joined: list[float], payloads: list):
        self.groups, self.joined, self.payloads, self.size = groups, joined, payloads, len(groups)
        self.begins = max(joined)  # s
        self.busy = 0.0  # s that each rank's processor spends on it
        self.joiners = [joined.index(self.begins)] * self.size

    def play(self, rounds: list[patterns.Round], sum_bytes: int = 0) -> list[float]:
        """Send these messages. Return the time at which each rank has received everything.

        `sum_bytes` is the size of the numbers that a rank adds to its own after each message.
        """
        groups, joined, now = self.groups, self.joined, list(self.joined)
        adds = [self._seconds_to_add(group, sum_bytes) if sum_bytes else 0.0 for group in groups]
        for one in rounds:
            before = list(now)  # the messages of a round do not wait for each other
            for src, dst, nbytes in one:
                route = groups[src].comm.route(dst)
                sent = max(before[src] + route.overhead, joined[dst])
                leaves = route.out.carry(sent, nbytes * route.beta)
                route.into.carry(leaves + route.latency, nbytes * route.beta)
                arrived = route.into.free
                now[src] = max(now[src], sent)
                now[dst] = max(now[dst], arrived + adds[dst])
                row = groups[dst].world_rank, COLLECTIVE, nbytes, sent, arrived, True
                groups[src].comm.event_log.messages.append(row)
        return now

    def ring(self, count: int, itemsize: int, first: int, stop: int) -> list[float]:
        """Simulate steps `first` to `stop` - 1 of a ring over `count` numbers; return when each rank is done, in s.

        The first P - 1 steps sum, the others only pass on. All messages from a rank to the next form one row.
        """
        groups, size = self.groups, self.size
        pieces = [(piece.stop - piece.start) * itemsize for piece in shares(count, size)]
        routes = [group.comm.route((place + 1) % size) for place, group in enumerate(groups)]
        if own := groups[0].process.sim.network.sum:
            sent = [sum(pieces[(place - step) % size] for step in range(first, stop)) for place in range(size)]
            times = 2 if first == 0 and stop < 2 * (size - 1) else 1  # gloo implements reduce-scatter as an all-reduce
            return self._in_memory(own, routes, sent, times)
        if len({id(route.out) for route in routes}) < size:
            return self.play(patterns.ring(pieces, first, stop), max(pieces) if first < size - 1 else 0)
        nbytes, shorter = np.array(pieces, float), pieces[-1]
        adds = np.array([[self._seconds_to_add(group, shorter + k * itemsize) for k in (0, 1)] for group in groups])
        out_free, in_free = (np.array([port.free for port in ports]) for ports in _ports(routes))
        link = np.array([(route.latency, route.beta, route.overhead) for route in routes]).T.copy()
        latency, beta, overhead = link
        extra = latency + np.minimum(nbytes.max() * beta, overhead + np.roll(adds[:, 1], -1))
        self.joiners = ring_joiners(np.maximum(self.joined, out_free), extra, stop - first).tolist()
        begins = np.maximum(max(self.joined), out_free)
        ends = ring_times(
            np.array(self.joined), out_free, in_free, link, nbytes, shorter, adds, 0 * adds, first, stop
        ).tolist()
        for place, (route, left, came) in enumerate(zip(routes, out_free.tolist(), in_free.tolist(), strict=True)):
            route.out.free, route.into.free = left, came
            sent = sum(pieces[(place - 1 - step) % size] for step in range(first, stop))
            right = (place + 1) % size
            row = groups[right].world_rank, COLLECTIVE, sent, float(begins[place]), ends[right], True
            groups[place].comm.event_log.messages.append(row)
        return ends

    def _in_memory(self, link: Link, routes: list, sent: list[int], times: int) -> list[float]:
        """Simulate an exchange in the shared memory of one computer. Return when each rank is done, in s.

        It begins when the last rank has arrived. The bytes that a rank has `sent` are moved `times` times. Processors
        are busy during the latency, in which threads wake each other, and for part of the rest.
        """
        ports = [port for route in routes for port in (route.out, route.into)]
        self.begins = begins = max(self.begins, *(port.free for port in ports))
        moves = times * max(sent) / link.bandwidth
        end = begins + link.latency + moves
        between = self.groups[0].process.sim.network.between
        self.busy = link.latency + moves * between.per_byte * between.bandwidth
        for port in ports:
            port.free = end
        for place, group in enumerate(self.groups):
            right = self.groups[(place + 1) % self.size].world_rank
            group.comm.event_log.messages.append((right, COLLECTIVE, sent[place], begins, end, True))
        return [end] * self.size

    @staticmethod
    def _seconds_to_add(group: Group, nbytes: int) -> float:
        """Return the time of `a += b` for vectors of `nbytes` bytes."""
        return group.process.sim.device.seconds(nbytes / 4, 3 * nbytes) * group.process.rank.slowness()


def _ports(routes: list) -> tuple[list, list]:
    return [route.out for route in routes], [route.into for route in routes]
