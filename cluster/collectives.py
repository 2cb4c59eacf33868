"""Collectives: what many ranks do at once, written with send and recv.

Each function below is one algorithm over a communicator with `rank`, `size`, `send` and `recv`; n is the length of
the vector, P the number of ranks, a the latency and b the seconds per byte of a link (M bytes in all).

    all-reduce            messages per rank   time, ranks arriving together      best for
    ring                  2 (P-1)             2 (P-1) a + 2 (P-1)/P M b          long vectors, any P
    recursive doubling    log2 P              log2 P (a + M b)                   short vectors
    halving/doubling      2 log2 P            2 log2 P a + 2 (P-1)/P M b         long vectors, P a power of two
    tree                  2 log2 P            2 ceil(log2 P) (a + M b)           the root has the sum first

Sums are formed in a fixed order, the same on every rank, so all ranks end with identical bits; the order differs
between algorithms, and so does the rounding.
Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Patarasuk & Yuan, JPDC 69(2), 2009.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import kernels
from cluster.comm import Comm, Message, shares

COLLECTIVE = -1
"""The tag of collectives; an algorithm's own tags are not negative."""


def ring(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x over all ranks in place, times `scale`: pieces travel round the ring, first summed, then copied.

    piece   0   1   2      after P - 1 steps rank r has the whole sum of piece r + 1,
    rank 0  >>          >>  after P - 1 more everybody has everything
    rank 1      >>
    rank 2          >>
    """
    size, rank = comm.size, comm.rank
    right, left = (rank + 1) % size, (rank - 1) % size
    pieces = [x[share] for share in shares(len(x), size)]
    for step in range(size - 1):
        comm.send(pieces[rank - step], right, tag)
        kernels.add(pieces[rank - step - 1], comm.recv(left, tag))
    if scale != 1.0:
        kernels.scale(pieces[(rank + 1) % size], scale)
    for step in range(size - 1):
        comm.send(pieces[(rank + 1 - step) % size], right, tag)
        pieces[rank - step][...] = comm.recv(left, tag)


def recursive_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: exchange everything with the partner at distance 1, 2, 4, ...; few messages, all of them long."""
    active, rank = _fold(comm, x, tag)
    if rank is not None:
        distance = 1
        while distance < active:
            partner = rank ^ distance
            comm.send(x, _unfolded(comm, active, partner), tag)
            kernels.add(x, comm.recv(_unfolded(comm, active, partner), tag))  # a + b is b + a, to the bit
            distance *= 2
        if scale != 1.0:
            kernels.scale(x, scale)
    _unfold(comm, x, active, tag)


def halving_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: halve what one is responsible for until one piece is left, then double it back (Rabenseifner)."""
    active, rank = _fold(comm, x, tag)
    if rank is not None:
        pieces = shares(len(x), active)
        low, high = 0, active  # the pieces this rank is still responsible for
        path = []
        while high - low > 1:
            middle = (low + high) // 2
            partner = _unfolded(comm, active, rank ^ (high - low) // 2)
            keep, give = ((low, middle), (middle, high)) if rank < middle else ((middle, high), (low, middle))
            comm.send(_joined(x, pieces, *give), partner, tag)
            kernels.add(_joined(x, pieces, *keep), comm.recv(partner, tag))
            path.append((partner, keep, give))
            low, high = keep
        if scale != 1.0:
            kernels.scale(_joined(x, pieces, low, high), scale)
        for partner, keep, give in reversed(path):
            comm.send(_joined(x, pieces, *keep), partner, tag)
            _joined(x, pieces, *give)[...] = comm.recv(partner, tag)
    _unfold(comm, x, active, tag)


def tree(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: up a binomial tree to rank 0, and down again."""
    distance = 1
    while distance < comm.size:
        if comm.rank & distance:
            comm.send(x, comm.rank - distance, tag)
            break
        if comm.rank + distance < comm.size:
            kernels.add(x, comm.recv(comm.rank + distance, tag))
        distance *= 2
    if comm.rank == 0 and scale != 1.0:
        kernels.scale(x, scale)
    x[...] = broadcast(comm, x, 0, tag)


ALL_REDUCE: dict[str, Callable] = {
    "ring": ring,
    "recursive_doubling": recursive_doubling,
    "halving_doubling": halving_doubling,
    "tree": tree,
}


def reduce_scatter(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> np.ndarray:
    """Piece `rank` of the sum over all ranks: the first half of a ring. x keeps its values."""
    size, rank = comm.size, comm.rank
    pieces = [x[share] for share in shares(len(x), size)]
    mine = pieces[rank - 1 if size > 1 else rank].copy()
    for step in range(size - 1):
        comm.send(mine, (rank + 1) % size, tag)
        mine = comm.recv((rank - 1) % size, tag)
        kernels.add(mine, pieces[(rank - step - 2) % size])
    if scale != 1.0:
        kernels.scale(mine, scale)
    return mine


def all_gather(comm: Comm, x: Message, tag: int = COLLECTIVE) -> list[Message]:
    """Everybody's x, by rank: the messages travel round the ring."""
    size, rank = comm.size, comm.rank
    gathered: list[Message] = [None] * size
    gathered[rank] = x
    for step in range(size - 1):
        comm.send(gathered[rank - step], (rank + 1) % size, tag)
        gathered[rank - step - 1] = comm.recv((rank - 1) % size, tag)
    return gathered


def broadcast(comm: Comm, x: Message, src: int = 0, tag: int = COLLECTIVE) -> Message:
    """src's x, down a binomial tree: ceil(log2 P) (a + M b)."""
    size = comm.size
    rank = (comm.rank - src) % size  # as if src were rank 0
    distance = 1
    while distance < size:
        if rank < distance:
            if rank + distance < size:
                comm.send(x, (rank + distance + src) % size, tag)
        elif rank < 2 * distance:
            x = comm.recv((rank - distance + src) % size, tag)
        distance *= 2
    return x


def barrier(comm: Comm, tag: int = COLLECTIVE) -> None:
    """Nobody leaves before everybody has come: ceil(log2 P) rounds of empty messages, ever further (dissemination)."""
    distance = 1
    while distance < comm.size:
        comm.send(None, (comm.rank + distance) % comm.size, tag)
        comm.recv((comm.rank - distance) % comm.size, tag)
        distance *= 2


def _fold(comm: Comm, x: np.ndarray, tag: int) -> tuple[int, int | None]:
    """Ranks beyond the largest power of two hand their x to a neighbour: (how many stay active, my number or None)."""
    active = 1 << (comm.size.bit_length() - 1)
    extra = comm.size - active  # the first 2 extra ranks pair up, odd ones stay
    if comm.rank >= 2 * extra:
        return active, comm.rank - extra
    if comm.rank % 2 == 0:
        comm.send(x, comm.rank + 1, tag)
        return active, None
    kernels.add(x, comm.recv(comm.rank - 1, tag))
    return active, comm.rank // 2


def _unfold(comm: Comm, x: np.ndarray, active: int, tag: int) -> None:
    if comm.rank < 2 * (comm.size - active):
        if comm.rank % 2:
            comm.send(x, comm.rank - 1, tag)
        else:
            x[...] = comm.recv(comm.rank + 1, tag)


def _unfolded(comm: Comm, active: int, number: int) -> int:
    extra = comm.size - active
    return 2 * number + 1 if number < extra else number + extra


def _joined(x: np.ndarray, pieces: list[slice], low: int, high: int) -> np.ndarray:
    return x[pieces[low].start : pieces[high - 1].stop]
