"""Collectives on trees: partial sums go up to a root, at most log2 P steps away, and the sum comes down again."""

from functools import lru_cache

import numpy as np

import kernels
from cluster.collectives.summands import add, summand
from cluster.comm import COLLECTIVE, Comm, Message, shares

LAG = 2  # chunks by which a level of the double tree lags behind the level below it on the way up
FILL = 8192  # bytes: about a quarter of what links carry during their latency, 23 kB on 10 GbE, 60 kB on a loopback


def tree(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: partial sums go up a binomial tree to rank 0, then the sum comes down again."""
    distance = 1
    while distance < comm.size:
        if comm.rank & distance:
            comm.send(summand(x, scale), comm.rank - distance, tag)
            break
        if comm.rank + distance < comm.size:
            add(x, comm.recv(comm.rank + distance, tag), scale)
        distance *= 2
    if comm.rank == 0 and scale != 1.0:
        kernels.scale(x, scale)
    x[...] = broadcast(comm, x, 0, tag)


def broadcast(comm: Comm, x: Message, src: int = 0, tag: int = COLLECTIVE) -> Message:
    """Return src's x on every rank. It goes down a binomial tree, which takes ceil(log2 P) (a + n b) seconds."""
    size = comm.size
    rank = (comm.rank - src) % size  # renumbered so that src is 0
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
    """Sum x in place: one half by a binary tree, the other by a second tree whose inner ranks are leaves of the first.

            0                                level 3
                    4                        level 2
            2               6                level 1      the second tree is the mirror image: 7 for 0, 6 for 1, ...
        1       3       5       7            level 0

    In a single tree, half of the ranks would be leaves, which pass nothing on. In two trees, every rank sends and
    receives n bytes on the way up, and n on the way down. The halves are cut into `chunks`, so that many levels work at
    the same time. Each level lags LAG chunks behind the one before it, so that no rank waits for the latency either. No
    rank has the same parent in both trees (except rank 2 of three, which is one level below its parent in both), so
    messages need not name the tree to which they belong.
    """
    size, rank = comm.size, comm.rank
    top = (size - 1).bit_length()
    chunks = chunks or chunks_of(size, x.nbytes)
    halves = [[half[share] for share in shares(len(half), chunks)] for half in (x[: len(x) // 2], x[len(x) // 2 :])]
    roles = [(*place(size, rank, second), halves[second]) for second in (False, True)]
    for turn in range(chunks + LAG * top):
        for level, parent, children, pieces in roles:
            chunk = turn - LAG * level
            if 0 <= chunk < chunks:
                for child in children:
                    add(pieces[chunk], comm.recv(child, tag), scale)
                if parent is not None:
                    comm.send(summand(pieces[chunk], scale), parent, tag)
                elif scale != 1.0:
                    kernels.scale(pieces[chunk], scale)
    for turn in range(chunks + LAG * top):
        for level, parent, children, pieces in roles:
            chunk = turn - LAG * (top - level)
            if 0 <= chunk < chunks:
                if parent is not None:
                    pieces[chunk][...] = comm.recv(parent, tag)
                for child in children:
                    comm.send(pieces[chunk], child, tag)


def chunks_of(size: int, nbytes: float) -> int:
    """Return the number of chunks into which `size` ranks cut each half of a vector of `nbytes` bytes."""
    return max(1, round(((size - 1).bit_length() * nbytes / FILL) ** 0.5))


@lru_cache(maxsize=8192)
def place(size: int, rank: int, second: bool) -> tuple[int, int | None, tuple[int, ...]]:
    """Return (level, parent or None, children) of a rank in NCCL's first or second tree.

    In the first tree, a rank differs from its parent in its lowest set bit, which gives its level, and in the next bit.
    The second tree is the same with the ranks renumbered: in reverse or, if P is odd, shifted by one.
    """

    def renumber(r: int) -> int:
        return r if not second else (r + 1) % size if size % 2 else size - 1 - r

    def above(r: int) -> int:
        bit = r & -r
        parent = (r ^ bit) | (bit << 1)
        return parent if parent < size else r ^ bit

    mine = next(r for r in range(size) if renumber(r) == rank)
    children = tuple(renumber(r) for r in range(1, size) if above(r) == mine)
    if mine == 0:
        return (size - 1).bit_length(), None, children
    return (mine & -mine).bit_length() - 1, renumber(above(mine)), children
