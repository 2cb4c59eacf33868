"""Which messages a collective sends: rounds of (sender, receiver, bytes), with ranks numbered within the group.

A rank begins a round once it has received its messages of the previous round.

    tree       broadcast and, backwards, reduce: a binomial tree, log2 P rounds
    star       gather and scatter: the root and every other rank
    pairwise   all-to-all: in round k rank r sends to r + k
    dissemination   barrier: in round k rank r notifies r + 2^k
    ring       all-gather and similar ones, on ports that several members share: P - 1 rounds, or twice as many
"""

from collections.abc import Sequence

Round = list[tuple[int, int, int]]


def tree(size: int, root: int, nbytes: int) -> list[Round]:
    """Return the rounds of a broadcast of `nbytes` bytes from `root`."""
    rounds, reach = [], 1
    while reach < size:
        ends = [(place, place + reach) for place in range(reach) if place + reach < size]
        rounds.append([((a + root) % size, (b + root) % size, nbytes) for a, b in ends])
        reach *= 2
    return rounds


def reversed_tree(size: int, root: int, nbytes: int) -> list[Round]:
    """Return the rounds of a reduce to `root`."""
    return [[(dst, src, n) for src, dst, n in one] for one in reversed(tree(size, root, nbytes))]


def gather(size: int, root: int, nbytes: int) -> list[Round]:
    return [[(rank, root, nbytes) for rank in range(size) if rank != root]]


def scatter(size: int, root: int, nbytes: int) -> list[Round]:
    return [[(root, rank, nbytes) for rank in range(size) if rank != root]]


def pairwise(sizes: Sequence[Sequence[int]]) -> list[Round]:
    """Return the rounds of an all-to-all. `sizes[src][dst]` is in bytes."""
    size = len(sizes)
    return [[(r, (r + k) % size, sizes[r][(r + k) % size]) for r in range(size)] for k in range(1, size)]


def dissemination(size: int) -> list[Round]:
    return [[(rank, (rank + (1 << k)) % size, 0) for rank in range(size)] for k in range((size - 1).bit_length())]


def ring(sizes: Sequence[int], first: int, stop: int) -> list[Round]:
    """Return rounds first:stop of a ring all-reduce. `sizes[piece]` is in bytes; see `ring_recurrence.ring_times`."""
    size = len(sizes)
    return [[(r, (r + 1) % size, sizes[(r - 1 - step) % size]) for r in range(size)] for step in range(first, stop)]
