"""Collectives on a ring: pieces of a vector travel from neighbour to neighbour, so every link is always busy."""

from collections.abc import Sequence

import numpy as np

import kernels
from cluster.collectives.summands import add, summand
from cluster.comm import COLLECTIVE, Comm, Message, shares


def ring(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place and multiply it by `scale`: a reduce-scatter, then an all-gather, from neighbour to neighbour.

    piece   0   1   2
    rank 0          >>      after P - 1 steps rank r has the whole sum of piece r;
    rank 1  >>              after P - 1 more, all ranks have all pieces
    rank 2      >>
    """
    around(comm, range(comm.size), [x[share] for share in shares(len(x), comm.size)], scale, tag)


def around(comm: Comm, ranks: Sequence[int], pieces: list[np.ndarray], scale: float, tag: int) -> None:
    """Sum all pieces in place over `ranks`, which include this rank, and multiply them by `scale`."""
    sum_pieces(comm, ranks, pieces, scale, tag)
    if scale != 1.0:
        kernels.scale(pieces[ranks.index(comm.rank)], scale)
    copy_pieces(comm, ranks, pieces, tag)


def sum_pieces(comm: Comm, ranks: Sequence[int], pieces: list[np.ndarray], scale: float, tag: int) -> None:
    """Reduce-scatter in place on the ring of `ranks`. Afterwards ranks[i] has the whole sum of piece i, unscaled."""
    size, i = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(i + 1) % size], ranks[i - 1]
    for step in range(size - 1):
        comm.send(summand(pieces[i - 1 - step], scale), right, tag)
        add(pieces[i - 2 - step], comm.recv(left, tag), scale)


def copy_pieces(comm: Comm, ranks: Sequence[int], pieces: list[np.ndarray], tag: int) -> None:
    """All-gather in place on the ring of `ranks`. ranks[i] starts with piece i; afterwards all have all pieces."""
    size, i = len(ranks), ranks.index(comm.rank)
    right, left = ranks[(i + 1) % size], ranks[i - 1]
    for step in range(size - 1):
        comm.send(pieces[i - step], right, tag)
        pieces[i - 1 - step][...] = comm.recv(left, tag)


def reduce_scatter(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> np.ndarray:
    """Return this rank's piece of the sum over all ranks, multiplied by `scale`.

    The result is identical, bit for bit, to that piece of the result of `ring`. x is not changed.
    """
    size, rank = comm.size, comm.rank
    pieces = [x[share] for share in shares(len(x), size)]
    mine = pieces[rank - 1] if size > 1 else x.copy()
    for step in range(size - 1):
        comm.send(summand(mine, scale), (rank + 1) % size, tag)
        mine = kernels.copy(pieces[rank - 2 - step])
        add(mine, comm.recv((rank - 1) % size, tag), scale)
    if scale != 1.0:
        kernels.scale(mine, scale)
    return mine


def all_gather(comm: Comm, x: Message, tag: int = COLLECTIVE) -> list[Message]:
    """Return every rank's x, in rank order. The messages travel around the ring."""
    size, rank = comm.size, comm.rank
    gathered: list[Message] = [None] * size
    gathered[rank] = x
    for step in range(size - 1):
        comm.send(gathered[rank - step], (rank + 1) % size, tag)
        gathered[rank - step - 1] = comm.recv((rank - 1) % size, tag)
    return gathered
