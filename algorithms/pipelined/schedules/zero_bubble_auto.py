"""Automatic zero bubble: where W go is not written down, but found, for the times that passes really take.

H1 and H2 let W lag by a fixed number, which fits where F, I and W take equally long. Here ranks fill their lists one op
after the other, within the memory of `limit` times what 1F1B's first rank holds (ZB-1p, ZB-2p):

    first   F, as many as come before the first I could and memory bears
    then    F and I in turn; before each, while it is not there yet, W: if the gap takes a whole one, if this rank
            would otherwise become the one that has idled longest, or if F finds no memory
    last    W that are left

So that nobody starves, a rank is always an F ahead of the next one. Three switches are tried both ways, and the lists
with the shortest longest span are taken: one F more at first, though I waits; no F where an I is there already; a W
in every gap.

    rank 0   F0 F1 F2 F3 .. I0 W0 I1 W1 I2 W2 I3 W3
    rank 1   .. F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3
    rank 2   .. .. F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3        ZB-2p, if F, I and W take equally long; ZB-1p is then H1

What I leaves behind for W is KEPT of a micro-batch's activations, so W may wait for long before memory is full.

Source: Qi et al., ICLR 2024, section 3.1. It reproduces the ZB-1p and ZB-2p columns of their Table 5 to four digits.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from algorithms.parts.pipeline.ops import Op

KEPT = 32 / (34 + 5 * 8)  # of a transformer's block: 32 sbh of 34 sbh + 5 s^2 ab bytes, if s a = 8 h


def schedule(
    rank: int,
    ranks: int,
    chunks: int,
    limit: int = 1,
    forward: float = 1.0,
    inputs: float = 1.0,
    weights: float = 1.0,
    latency: float = 0.0,
) -> list[Op]:
    """One mini-batch, if F, I and W take as long as this and a message so long."""
    return best(ranks, chunks, limit * ranks, forward, inputs, weights, latency)[rank]


@lru_cache(maxsize=64)  # every rank asks for the same
def best(ranks: int, chunks: int, memory: float, f: float, i: float, w: float, latency: float) -> list[list[Op]]:
    """The lists of all ranks, none of which holds more than `memory` micro-batches."""
    tried = [Greedy(ranks, chunks, memory, f, i, w, latency, *on) for on in product((False, True), repeat=3)]
    return min(tried, key=lambda one: one.span).lists


class Greedy:
    """The lists that come of one setting of the switches, and the longest span of a rank."""

    def __init__(self, ranks, chunks, memory, f, i, w, latency, late, skip, eager):
        self.chunks, self.memory, self.latency, self.eager = chunks, memory, latency, eager
        self.cost = {"F": f, "I": i, "W": w}
        self.lists = [[] for _ in range(ranks)]
        self.done = {kind: [0] * ranks for kind in "FIW"}
        self.end: dict[tuple[str, int, int], float] = {}
        self.free, self.idled = [0.0] * ranks, [0.0] * ranks
        for rank, ahead in enumerate(self.ahead(late)):
            for _ in range(ahead):
                self.put("F", rank)
        for chunk in range(chunks):
            for rank in reversed(range(ranks)):
                next_rank = self.done["F"][rank + 1] if rank + 1 < ranks else chunk
                fed = skip and self.done["F"][rank] > next_rank and self.comes("I", rank) <= self.free[rank]
                if chunk and self.done["F"][rank] < chunks and not fed:
                    self.fill("F", rank)
                    if self.bears_another(rank):
                        self.put("F", rank)
                self.fill("I", rank)
                self.put("I", rank)
        for rank in range(ranks):
            while self.done["W"][rank] < chunks:
                self.put("W", rank)
            self.lists[rank].append(Op("U", rank, 0))
        self.span = max(end - rank * (f + latency) for rank, end in enumerate(self.free))

    def ahead(self, late):
        """How many F each rank does before its first I."""
        ahead, back = [], 0.0  # when the first I of the rank after is done
        f, last = self.cost["F"], len(self.lists) - 1
        for rank in range(last, -1, -1):
            begins = rank * (f + self.latency)
            if rank == last:
                count = 1
            else:
                fitting = int((back + self.latency - begins) / f + 1e-9) if f else self.chunks
                count = max(fitting + late, ahead[-1] + 1)
            ahead.append(max(1, min(count, self.memory - rank, self.chunks)))
            back = max(back + self.latency if rank < last else 0.0, begins + ahead[-1] * f) + self.cost["I"]
        return reversed(ahead)

    def comes(self, kind, rank):
        """When the next op of this kind could start, for all that others do."""
        number = self.done[kind][rank]
        if kind == "F":
            return self.end["F", rank - 1, number] + self.latency if rank else 0.0
        return self.end["I", rank + 1, number] + self.latency if rank + 1 < len(self.lists) else 0.0

    def bears_another(self, rank):
        """Whether there is memory for one more micro-batch."""
        f, i, w = (self.done[kind][rank] for kind in "FIW")
        return f - i + KEPT * (i - w) <= self.memory - 1

    def fill(self, kind, rank):
        """W, as long as they serve, before the next op of this kind."""
        while self.done["W"][rank] < self.done["I"][rank]:
            gap = self.comes(kind, rank) - self.free[rank]
            full = kind == "F" and not self.bears_another(rank)
            most = self.idled[rank] + gap > max(self.idled) + 1e-12
            if not full and (gap <= 1e-12 or not (gap >= self.cost["W"] - 1e-12 or most or self.eager)):
                return
            self.put("W", rank)

    def put(self, kind, rank):
        """Do the next op of this kind as soon as can be."""
        number, start = self.done[kind][rank], self.free[rank]
        if kind != "W":
            start = max(start, self.comes(kind, rank))
        if self.lists[rank]:
            self.idled[rank] += start - self.free[rank]
        self.lists[rank].append(Op(kind, rank, number))
        self.free[rank] = self.end[kind, rank, number] = start + self.cost[kind]
        self.done[kind][rank] += 1
