"""Traffic of a layer: how much it computes per byte sent, and when to split it instead of replicating it.

Data parallel, a layer computes 6 b A K FLOPs and sends 2 s K (N-1)/N bytes for its K weights: b samples per worker, s
bytes per number, A positions of its output that share the weights (1 if it is dense). K cancels. So convolutions hide
their all-reduce easily, and dense layers do not.

Split into pieces instead, a dense layer of F x F exchanges activations, which grow with the batch and not with F^2.
With N workers in G replicas of N / G pieces each it sends 2 s F (B / G + F G / N) bytes, least at G = sqrt(N B / F).

Source: Das et al., arXiv:1602.06709; Sridharan et al. (MLSL), arXiv:1801.08030.
"""

from __future__ import annotations

from math import sqrt


def intensity(batch: float, positions: float = 1.0, itemsize: int = 4) -> float:
    """Return the FLOPs per byte that a data-parallel layer sends, among many workers: 3 b A / s."""
    return 3 * batch * positions / itemsize


def hybrid(replicas: float, workers: int, batch: int, width: int, itemsize: int = 4) -> float:
    """Return the bytes that a worker sends for a dense layer of width x width; `batch` is that of all workers together.

    One replica is pure model parallelism; as many as workers are data parallel.
    """
    return 2 * itemsize * width * (batch / replicas + width * replicas / workers)


def best_replicas(workers: int, batch: int, width: int) -> float:
    """Return the number of replicas for which `hybrid` is least."""
    return sqrt(workers * batch / width)
