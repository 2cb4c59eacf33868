"""Trees: sums climb to a root and come down again; nobody is further from the root than log2 P steps."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

import kernels
from cluster.comm import COLLECTIVE, Comm, Message, shares

CHUNK = 32_768
"""Bytes; about what a link carries during its latency, 23 kB on 10 GbE, 16 kB on EDR, 60 kB on a loopback."""


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


def broadcast(comm: Comm, x: Message, src: int = 0, tag: int = COLLECTIVE) -> Message:
    """src's x, down a binomial tree: ceil(log2 P) (a + n b)."""
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


def double_tree(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE, chunks: int = 0) -> None:
    """Sum x in place: half of it by one binary tree, half by another whose inner ranks are the leaves of the first.

            0
                    4
            2               6               the second is its mirror image (7 for 0, 6 for 1, ...)
        1       3       5       7

    In one tree half of the ranks would be leaves, which pass nothing on; in two trees everybody sends and receives n
    on the way up and n on the way down. Each half goes in `chunks`, so that no level waits for the one below it to
    have everything; there are as many as fit the vector and the latency, if none are given. NCCL does it like this.
    """
    size, rank = comm.size, comm.rank
    chunks = chunks or max(1, round((size.bit_length() * x.nbytes / CHUNK) ** 0.5))
    halves = [[half[share] for share in shares(len(half), chunks)] for half in (x[: len(x) // 2], x[len(x) // 2 :])]
    roles = [(*place(size, rank, second), halves[second], tag - second) for second in (0, 1)]
    roles.sort(key=lambda role: len(role[1]))  # as a leaf there is nothing to wait for
    for chunk in range(chunks):
        for parent, children, pieces, channel in roles:
            for child in children:
                kernels.add(pieces[chunk], comm.recv(child, channel))
            if parent is not None:
                comm.send(pieces[chunk], parent, channel)
            elif scale != 1.0:
                kernels.scale(pieces[chunk], scale)
    for chunk in range(chunks):
        for parent, children, pieces, channel in reversed(roles):
            if parent is not None:
                pieces[chunk][...] = comm.recv(parent, channel)
            for child in children:
                comm.send(pieces[chunk], child, channel)


@lru_cache(maxsize=8192)
def place(size: int, rank: int, second: bool) -> tuple[int | None, tuple[int, ...]]:
    """(parent or None, children) of a rank in NCCL's first or second tree.

    The first hangs every rank below the one that differs from it in the lowest bit set, and in the next. The second is
    the same tree over other numbers: counted from the end, or, where P is odd, shifted by one.
    """

    def renamed(r: int) -> int:
        return r if not second else (r + 1) % size if size % 2 else size - 1 - r

    mine = next(r for r in range(size) if renamed(r) == rank)
    parent = _above(size, mine)
    children = tuple(renamed(r) for r in range(1, size) if _above(size, r) == mine)
    return None if parent is None else renamed(parent), children


def _above(size: int, rank: int) -> int | None:
    if rank == 0:
        return None
    bit = rank & -rank
    parent = (rank ^ bit) | (bit << 1)
    return parent if parent < size else rank ^ bit
