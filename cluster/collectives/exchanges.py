"""Collectives in which pairs of ranks exchange data: at distance 1, 2, 4, ..., or at every distance (all_to_all)."""

from collections.abc import Sequence

import numpy as np

import kernels
from cluster.collectives.summands import add, summand
from cluster.comm import COLLECTIVE, Comm, Message, shares


def recursive_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: exchange the whole vector with partners at distance 1, 2, 4, ...; few messages, all long."""
    active, rank = _fold(comm, x, scale, tag)
    if rank is not None:
        distance = 1
        while distance < active:
            partner = _original_rank(comm, active, rank ^ distance)
            comm.send(summand(x, scale), partner, tag)
            add(x, comm.recv(partner, tag), scale)  # a + b equals b + a to the bit, so both partners get the same sum
            distance *= 2
        if scale != 1.0:
            kernels.scale(x, scale)
    _unfold(comm, x, active, tag)


def halving_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: halve each rank's part until one piece is left, then collect the rest by doubling (Rabenseifner).

    The nearest partner comes first, so that the longest messages travel the shortest distance.
    """
    active, rank = _fold(comm, x, scale, tag)
    if rank is not None:
        pieces = shares(len(x), active)
        low, high = 0, active  # the pieces that this rank still sums
        path, distance = [], 1
        while distance < active:
            middle = (low + high) // 2
            partner = _original_rank(comm, active, rank ^ distance)
            keep, give = ((middle, high), (low, middle)) if rank & distance else ((low, middle), (middle, high))
            comm.send(summand(_part(x, pieces, *give), scale), partner, tag)
            add(_part(x, pieces, *keep), comm.recv(partner, tag), scale)
            path.append((partner, keep, give))
            low, high = keep
            distance *= 2
        if scale != 1.0:
            kernels.scale(_part(x, pieces, low, high), scale)
        for partner, keep, give in reversed(path):
            comm.send(_part(x, pieces, *keep), partner, tag)
            _part(x, pieces, *give)[...] = comm.recv(partner, tag)
    _unfold(comm, x, active, tag)


def all_to_all(comm: Comm, parts: Sequence[Message], tag: int = COLLECTIVE) -> list[Message]:
    """Send parts[r] to each rank r, and return what each rank sent to this one, by rank.

    In round i of P-1, every rank sends to the rank i places after it and receives from the rank i places before it.
    """
    size, rank = comm.size, comm.rank
    received: list[Message] = [None] * size
    received[rank] = parts[rank]
    for distance in range(1, size):
        comm.send(parts[(rank + distance) % size], (rank + distance) % size, tag)
        received[rank - distance] = comm.recv((rank - distance) % size, tag)
    return received


def barrier(comm: Comm, tag: int = COLLECTIVE) -> None:
    """Wait until all ranks have called this.

    A dissemination barrier: ceil(log2 P) rounds, with an empty message to the rank at distance 1, 2, 4, ... in each.
    """
    distance = 1
    while distance < comm.size:
        comm.send(None, (comm.rank + distance) % comm.size, tag)
        comm.recv((comm.rank - distance) % comm.size, tag)
        distance *= 2


def _fold(comm: Comm, x: np.ndarray, scale: float, tag: int) -> tuple[int, int | None]:
    """Reduce the active ranks to a power of two: each excess rank adds its x to a neighbour's and becomes inactive.

    Return the number of active ranks, and this rank's number among them, None if it is inactive.
    """
    active = 1 << (comm.size.bit_length() - 1)
    extra = comm.size - active  # the first 2 * extra ranks pair up, and the odd ones stay active
    if comm.rank >= 2 * extra:
        return active, comm.rank - extra
    if comm.rank % 2 == 0:
        comm.send(summand(x, scale), comm.rank + 1, tag)
        return active, None
    add(x, comm.recv(comm.rank - 1, tag), scale)
    return active, comm.rank // 2


def _unfold(comm: Comm, x: np.ndarray, active: int, tag: int) -> None:
    if comm.rank < 2 * (comm.size - active):
        if comm.rank % 2:
            comm.send(x, comm.rank - 1, tag)
        else:
            x[...] = comm.recv(comm.rank + 1, tag)


def _original_rank(comm: Comm, active: int, number: int) -> int:
    extra = comm.size - active
    return 2 * number + 1 if number < extra else number + extra


def _part(x: np.ndarray, pieces: list[slice], low: int, high: int) -> np.ndarray:
    return x[pieces[low].start : pieces[high - 1].stop]
