"""A perfect solution to the exercise on long sequences: blocks travel around a ring and are merged, and positions are
zigzag.
"""

import numpy as np


def worker(comm, task, s):
    mine = positions(comm.rank, comm.size, s.positions)
    q, k, v = task.start(mine)
    y, total = np.zeros_like(q), np.zeros(len(q), q.dtype)
    most = np.full(len(q), -np.inf, q.dtype)  # the largest score of each query so far
    block = k, v
    for hop in range(comm.size):
        coming = None
        if hop < comm.size - 1:
            comm.isend(block, (comm.rank + 1) % comm.size)
            coming = comm.irecv((comm.rank - 1) % comm.size)
        theirs = positions((comm.rank - hop) % comm.size, comm.size, s.positions)
        for some in halves(mine):
            for others in halves(theirs):
                if theirs[others][0] <= mine[some][-1]:
                    scores = task.forward(q[some], block[0][others])
                    scores[theirs[others] > mine[some][:, None]] = -np.inf
                    merge(y[some], total[some], most[some], scores, block[1][others])
        if coming:
            block = coming.wait()
    return y / total[:, None]


def merge(y, total, most, scores, values):
    larger = np.maximum(most, scores.max(axis=1))
    before = np.exp(most - larger)
    weights = np.exp(scores - larger[:, None])
    total[:] = before * total + weights.sum(axis=1)
    y[:] = before[:, None] * y + weights @ values
    most[:] = larger


def halves(places):
    return slice(None, len(places) // 2), slice(len(places) // 2, None)


def positions(rank, ranks, count):
    half = count // (2 * ranks)
    early, late = rank * half, (2 * ranks - 1 - rank) * half
    return np.concatenate([np.arange(early, early + half), np.arange(late, late + half)])
