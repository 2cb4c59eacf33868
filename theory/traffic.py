"""The traffic of a layer: how much it computes per byte sent, and when to split it instead of replicating it.

With data parallelism, a layer of K weights computes 6 b A K FLOPs and sends 2 s K (N-1)/N bytes, with b samples per
worker, s bytes per number, and A positions of the output that share the weights: 1 for a dense layer that reads a whole
image, the number of tokens for one in a transformer. K cancels. So convolutions hide their all-reduce easily, and dense
layers if they have many tokens.

If a dense layer of F x F is split into pieces instead, it exchanges activations, which grow with the batch and not with
F^2. With N workers in G replicas of N / G pieces, each worker sends 2 s F (B / G + F G / N) bytes, which is least at
G = sqrt(N B / F).

Source: Das et al., arXiv:1602.06709; Sridharan et al. (MLSL), arXiv:1801.08030.
"""

from math import sqrt


def intensity(batch: float, positions: float = 1.0, itemsize: int = 4) -> float:
    """Return the number of FLOPs that a data-parallel layer computes per byte it sends.

    With many workers, this is 3 b A / s.
    """
    return 3 * batch * positions / itemsize


def hybrid(replicas: float, workers: int, batch: int, width: int, itemsize: int = 4) -> float:
    """Return the number of bytes that a worker sends for a dense layer of width x width. `batch` is the number of
    samples of all workers.

    One replica is pure model parallelism; as many replicas as workers is pure data parallelism.
    """
    return 2 * itemsize * width * (batch / replicas + width * replicas / workers)


def best_replicas(workers: int, batch: int, width: int) -> float:
    """Return the number of replicas that minimises `hybrid`."""
    return sqrt(workers * batch / width)
