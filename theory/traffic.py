"""Traffic: which layers a network has to fear, and when to cut a layer instead of copying it.

Data parallel, a layer computes 6 b A K and sends 2 s K (N-1)/N bytes for its K weights: b samples per worker, s bytes
per number, A places of its output that share the weights (1 if it is dense). K falls out. So convolutions carry
their sums easily, and dense layers do not.

Cut in pieces instead, a dense layer of F x F exchanges activations, which grow with the batch and not with F^2. With
N workers in G replicas of N / G pieces each it sends 2 s F (B / G + F G / N) bytes, least at G = sqrt(N B / F).

Source: Das et al., arXiv:1602.06709; Sridharan et al. (MLSL), arXiv:1801.08030.
"""

from __future__ import annotations

from math import sqrt


def intensity(batch: float, places: float = 1.0, itemsize: int = 4) -> float:
    """FLOPs for each byte that a data-parallel layer sends, among many workers: 3 b A / s."""
    return 3 * batch * places / itemsize


def hybrid(replicas: float, workers: int, batch: int, width: int, itemsize: int = 4) -> float:
    """Bytes that a worker sends for a dense layer of width x width; `batch` is that of all workers together.

    One replica is a model cut in pieces; as many as workers are data parallel, each with activations for itself.
    """
    return 2 * itemsize * width * (batch / replicas + width * replicas / workers)


def best_replicas(workers: int, batch: int, width: int) -> float:
    """Where `hybrid` is least."""
    return sqrt(workers * batch / width)
