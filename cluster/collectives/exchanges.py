"""Exchanges: partners at distance 1, 2, 4, ... exchange data; log2 P rounds reach all ranks."""

from __future__ import annotations

import numpy as np

import kernels
from cluster.collectives.summands import add, summand
from cluster.comm import COLLECTIVE, Comm, shares


def recursive_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: exchange the whole vector with the partner at distance 1, 2, 4, ...; few messages, all long."""
    active, rank = _fold(comm, x, scale, tag)
    if rank is not None:
        distance = 1
        while distance < active:
            partner = _unfolded(comm, active, rank ^ distance)
            comm.send(summand(x, scale), partner, tag)
            add(x, comm.recv(partner, tag), scale)  # a + b equals b + a to the bit, so both partners get the same sum
            distance *= 2
        if scale != 1.0:
            kernels.scale(x, scale)
    _unfold(comm, x, active, tag)


def halving_doubling(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: halve the part each rank sums until one piece is left, then double it back (Rabenseifner).

    The nearest partner comes first, so that the longest messages have the shortest way.
    """
    active, rank = _fold(comm, x, scale, tag)
    if rank is not None:
        pieces = shares(len(x), active)
        low, high = 0, active  # the pieces that this rank still sums
        path, distance = [], 1
        while distance < active:
            middle = (low + high) // 2
            partner = _unfolded(comm, active, rank ^ distance)
            keep, give = ((middle, high), (low, middle)) if rank & distance else ((low, middle), (middle, high))
            comm.send(summand(_joined(x, pieces, *give), scale), partner, tag)
            add(_joined(x, pieces, *keep), comm.recv(partner, tag), scale)
            path.append((partner, keep, give))
            low, high = keep
            distance *= 2
        if scale != 1.0:
            kernels.scale(_joined(x, pieces, low, high), scale)
        for partner, keep, give in reversed(path):
            comm.send(_joined(x, pieces, *keep), partner, tag)
            _joined(x, pieces, *give)[...] = comm.recv(partner, tag)
    _unfold(comm, x, active, tag)


def barrier(comm: Comm, tag: int = COLLECTIVE) -> None:
    """Wait for all ranks: ceil(log2 P) rounds of empty messages to distance 1, 2, 4, ... (dissemination barrier)."""
    distance = 1
    while distance < comm.size:
        comm.send(None, (comm.rank + distance) % comm.size, tag)
        comm.recv((comm.rank - distance) % comm.size, tag)
        distance *= 2


def _fold(comm: Comm, x: np.ndarray, scale: float, tag: int) -> tuple[int, int | None]:
    """Add the x of ranks beyond the largest power of two to their neighbours'.

    Return (number of ranks that stay active, number of this one among them or None).
    """
    active = 1 << (comm.size.bit_length() - 1)
    extra = comm.size - active  # the first 2 extra ranks pair up, odd ones stay
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


def _unfolded(comm: Comm, active: int, number: int) -> int:
    extra = comm.size - active
    return 2 * number + 1 if number < extra else number + extra


def _joined(x: np.ndarray, pieces: list[slice], low: int, high: int) -> np.ndarray:
    return x[pieces[low].start : pieces[high - 1].stop]
