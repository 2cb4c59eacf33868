"""Costs: what exchanges cost in closed form, ranks arriving together.

P ranks, n bytes. A message of n bytes takes alpha + n beta seconds, and adding n bytes to others n gamma; a rank has
one port each way. Every function gives seconds, if it does not say otherwise. The simulated cluster is held to these
in `tests/contract/cluster/test_collectives.py`; it knows in addition what happens when ranks come at different times.

Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Chan, Heimlich, Purkayastha & van de Geijn, CCPE 19(13), 2007.
"""

from __future__ import annotations

from math import log2, sqrt


def share(P: int) -> float:
    """2 (P-1)/P: how often a rank has to send the vector in an all-reduce, at least."""
    return 2 * (P - 1) / P


def rounds(P: int) -> int:
    """ceil(log2 P): how long it takes until everybody can have heard from everybody."""
    return (P - 1).bit_length()


def least(P: int, n: float, alpha: float, beta: float) -> float:
    """What no all-reduce by messages can beat, nor reach for short and long vectors alike."""
    return max(rounds(P) * alpha, share(P) * n * beta)


# all-reduce


def flat(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Everybody to rank 0 and back, one after the other."""
    return 2 * (P - 1) * (alpha + n * beta) + (P - 1) * n * gamma


def ring(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Any P that divides the vector; the fewest bytes, the most messages."""
    return 2 * (P - 1) * alpha + share(P) * n * (beta + gamma / 2)


def recursive_doubling(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """The fewest messages. If P is no power of two at most this: who is not folded in begins before the others."""
    folded = (2 * alpha + n * (2 * beta + gamma)) if P & (P - 1) else 0.0
    return int(log2(P)) * (alpha + n * (beta + gamma)) + folded


def halving_doubling(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Rabenseifner's: the fewest bytes where P is a power of two; otherwise the vector travels twice more."""
    active = 1 << int(log2(P))
    folded = (2 * alpha + n * (2 * beta + gamma)) if active < P else 0.0
    return 2 * int(log2(P)) * alpha + share(active) * n * (beta + gamma / 2) + folded


def tree(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Up and down a binomial tree. If P is no power of two at most this: some branches are shorter."""
    return rounds(P) * (2 * (alpha + n * beta) + n * gamma)


def double_tree(P: int, n: float, alpha: float, beta: float, chunks: int) -> float:
    """At most this: twice the vector, the time until the last level is busy, and the latency of a chunk."""
    return 2 * n * beta * (1 + rounds(P) / chunks) + (2 * rounds(P) + chunks - 1) * alpha


def hierarchical(
    nodes: int, ranks: int, n: float, within: tuple[float, float], between: tuple[float, float], shared: bool = True
) -> float:
    """`nodes` of `ranks` each; within, between: (alpha, beta). Either the ranks of a node share its port, or each has
    one of its own."""
    (alpha, beta), (far, slow) = within, between
    inside = 2 * (ranks - 1) * (alpha + n / ranks * beta)
    if nodes == 1:
        return inside
    piece = n / ranks / nodes * slow
    if shared:  # the messages of all ranks leave one after the other
        return inside + far + ranks * piece + (2 * nodes - 3) * max(far + piece, ranks * piece)
    return inside + 2 * (nodes - 1) * (far + piece)


def leaving(nodes: int, ranks: int) -> float:
    """The part of a hierarchical all-reduce's bytes that leaves a node."""
    return (nodes - 1) / (nodes * ranks - 1)


def torus(sides: tuple[int, ...], n: float, alpha: float, beta: float) -> float:
    """A ring along each side of a grid of ranks: the bytes of one ring, fewer messages."""
    P, steps = 1, 0
    for side in sides:
        P, steps = P * side, steps + 2 * (side - 1)
    return steps * alpha + share(P) * n * beta


def time(algorithm: str, P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """By the name it has in `cluster.collectives.ALL_REDUCE`; "fast" is the ring."""
    forms = {"fast": ring, "ring": ring, "recursive_doubling": recursive_doubling}
    return (forms | {"halving_doubling": halving_doubling, "tree": tree})[algorithm](P, n, alpha, beta, gamma)


def doubling_up_to(P: int, alpha: float, beta: float, instead_of: str) -> float:
    """Bytes up to which recursive doubling is quicker than "ring" or "halving_doubling"; P a power of two, above 2."""
    messages = {"ring": 2 * (P - 1), "halving_doubling": 2 * log2(P)}[instead_of]
    return alpha * (messages - log2(P)) / (beta * (log2(P) - share(P)))


# broadcast in m chunks


def chain(P: int, n: float, alpha: float, beta: float, m: int) -> float:
    """From neighbour to neighbour."""
    return (m + P - 2) * (alpha + n / m * beta)


def pipelined_tree(P: int, n: float, alpha: float, beta: float, m: int) -> float:
    """Down a binary tree, whose inner ranks forward everything twice."""
    return (m + 2 * rounds(P) - 2) * (alpha + n / m * beta)


def best_chunks(hops: int, n: float, alpha: float, beta: float) -> float:
    """The m for which (m + hops) (alpha + n/m beta) is least."""
    return sqrt(hops * n * beta / alpha)


# parameter servers


def server(P: int, n: float, alpha: float, beta: float, shards: int = 1, server_beta: float | None = None) -> float:
    """P workers push to and then pull from machines that hold a shard each, one direction after the other."""
    return 2 * max(n * beta, P * n / shards * (beta if server_beta is None else server_beta)) + 2 * alpha


def colocated(P: int, n: float, alpha: float, beta: float) -> float:
    """Every worker is the server of 1/P of the vector: the bytes of the ring in two messages' latency."""
    return 2 * alpha + share(P) * n * beta


def helped(P: int, extra: int, n: float, beta: float) -> float:
    """BytePS: P machines with a worker each, and `extra` that only serve, share the load as well as they can."""
    return 2 * P * (P - 1) / (P * P + extra * P - 2 * extra) * n * beta


# supersteps


def superstep(work: list[float], words: list[float], gap: float, latency: float) -> float:
    """Valiant's BSP: the slowest rank's work, the longest queue of words at `gap` each, and the barrier."""
    return max(work) + gap * max(words) + latency


def slowest(P: int) -> float:
    """How much longer than one the slowest of P exponential times takes, in the mean: 1 + 1/2 + ... + 1/P."""
    return sum(1 / i for i in range(1, P + 1))


# memory


def zero_memory(parameters: float, P: int, stage: int) -> float:
    """Bytes per rank of Adam in mixed precision, with what ZeRO's stage 0 to 3 deals out.

    Per parameter: 2 bytes of the parameter, 2 of the gradient, and 12 of the float32 copy and Adam's two averages.
    Source: Rajbhandari, Rasley, Ruwase & He, SC 2020, figure 1.
    """
    whole = {0: 16, 1: 4, 2: 2, 3: 0}[stage]
    return parameters * (whole + (16 - whole) / P)


def zero_traffic(parameters: float, P: int, stage: int) -> float:
    """Numbers that each rank sends per step: stage 3 gathers the parameters once more, for the backward pass."""
    return (3 if stage == 3 else 2) * parameters * (P - 1) / P
