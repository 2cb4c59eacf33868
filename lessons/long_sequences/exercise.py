"""Write ring attention: keys and values travel, and a rank never has more than two blocks of them.

`worker(comm, task, s)` runs on every rank of a simulated cluster. The ranks share one sequence of `s.positions`
positions, which is a multiple of 2 P for P ranks. Each rank chooses a P-th part of them, its own, and returns the
causal attention of these positions to the whole sequence: for position i with query q[i], over all keys j <= i,

    s[j] = q[i] k[j]^T / sqrt(width)        y[i] = sum over j of exp(s[j]) v[j] / sum over j of exp(s[j])

The worker below is correct. It takes consecutive positions, gathers all keys and values, and then attends. Change that:

- Pass keys and values round a ring, and merge what each block adds, by the online softmax. Scores may be in the
  thousands, so exp(s) may overflow or underflow.
- Transfer the next block while you attend to this one. Hold two blocks at most.
- Choose positions so that all ranks attend for the same time.
- Do not compute scores of keys that none of the queries may see. The unit is half a rank's positions: what the mask
  cuts through may be computed as a whole.
- There may be one rank, and as few as two positions on a rank.

What you have:

- `comm.rank`, `comm.size`; `comm.isend(x, rank)`, which begins to send x, an array or a tuple of arrays, and
  `comm.irecv(rank)`, which begins to receive the next message from that rank. Both return at once. `.wait()` of what
  `irecv` returns waits for the message and returns it. `comm.send(x, rank)`, `comm.recv(rank)`, and
  `comm.all_gather(x)`, the list of what all ranks give.
- `q, k, v = task.start(positions)`: the queries, keys and values at these positions, an array of whole numbers in
  ascending order; each is an array (number of positions, width). Ask once, for all positions of this rank; every
  position belongs to one rank.
- `task.forward(queries, keys)`: the scores s of all of these queries and all of these keys, an array (queries, keys).
  It takes time in proportion to its size, whether or not the queries may see the keys. Its arguments are rows of what
  `task.start` gave, here or elsewhere, unchanged and in any order. All scores that you use come from here.
- `s.positions`, `s.width`.

Scores and messages take time. Whatever else you compute is free. Numbers are float32. Return an array (positions of
this rank, width), in ascending order of positions. Every rank is a process of its own. NumPy and the standard library
may be imported.
"""

import numpy as np

TARGETS = {
    "memory": 1.9,  # times queries, output, three scores of half a block, and two blocks of keys and values
    "hidden": 1.05,  # times the time for which the busiest rank computes scores
    "balance": 1.02,  # times the mean of the ranks, for the rank that computes most scores
    "scores": 1.01,  # times the scores that the textbook's worker computes
    "traffic": 1.01,  # times the bytes of the textbook's worker
}


def worker(comm, task, s):
    """Return the attention of this rank's positions to the whole sequence, (positions / P, width)."""
    places = [positions(rank, comm.size, s.positions) for rank in range(comm.size)]
    mine = places[comm.rank]
    q, k, v = task.start(mine)
    blocks = comm.all_gather((k, v))
    keys, values = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    scores = task.forward(q, keys)
    scores[np.concatenate(places) > mine[:, None]] = -np.inf  # what the mask hides
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ values / weights.sum(axis=1, keepdims=True)


def positions(rank, ranks, count):
    """Return the positions of a rank, in ascending order."""
    each = count // ranks
    return np.arange(rank * each, (rank + 1) * each)
