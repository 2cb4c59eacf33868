"""Costs of collectives in closed form, for ranks that all arrive at the same time (the alpha-beta-gamma model).

There are P ranks and vectors of n bytes. A message of n bytes takes alpha + n beta seconds, and reducing n bytes takes
n gamma; a rank has one port in each direction. Functions return seconds unless they say otherwise.
`tests/contract/cluster/test_collectives.py` checks the simulated cluster against these formulas; the cluster can also
simulate ranks that arrive at different times.

Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Chan, Heimlich, Purkayastha & van de Geijn, CCPE 19(13), 2007.
"""

from math import log2


def share(P: int) -> float:
    """Return 2 (P-1)/P. In an all-reduce, the busiest rank sends at least this many times the vector."""
    return 2 * (P - 1) / P


def rounds(P: int) -> int:
    """Return ceil(log2 P), the fewest rounds after which every rank can have data from every other."""
    return (P - 1).bit_length()


def least(P: int, n: float, alpha: float, beta: float) -> float:
    """Return a lower bound on the time of any all-reduce that proceeds in rounds. A rank then sends its next message
    only once its previous one has arrived.

    No algorithm reaches the bound for both short and long vectors. Ranks that start several messages at once can beat
    it, by the part of alpha that does not occupy their processors.
    """
    return max(rounds(P) * alpha, share(P) * n * beta)


# all-reduce


def flat(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of an all-reduce through rank 0, which receives all vectors and sends the sum back, one message
    after the other.
    """
    return 2 * (P - 1) * (alpha + n * beta) + (P - 1) * n * gamma


def ring(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of an all-reduce that passes shares around a ring. It sends the fewest bytes and the most
    messages.

    P must divide the vector's length.
    """
    return 2 * (P - 1) * alpha + share(P) * n * (beta + gamma / 2)


def recursive_doubling(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of an all-reduce that exchanges whole vectors at doubling distances. It sends the fewest
    messages.

    This is an upper bound if P is not a power of two: ranks without a folded partner begin earlier.
    """
    folded = (2 * alpha + n * (2 * beta + gamma)) if P & (P - 1) else 0.0
    return int(log2(P)) * (alpha + n * (beta + gamma)) + folded


def halving_doubling(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of Rabenseifner's all-reduce, a reduce-scatter by halving and an all-gather by doubling.

    It sends the fewest bytes if P is a power of two; otherwise the vector is sent two more times.
    """
    active = 1 << int(log2(P))
    folded = (2 * alpha + n * (2 * beta + gamma)) if active < P else 0.0
    return 2 * int(log2(P)) * alpha + share(active) * n * (beta + gamma / 2) + folded


def tree(P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of an all-reduce that goes up and down a binomial tree.

    This is an upper bound if P is not a power of two: some branches are shorter.
    """
    return rounds(P) * (2 * (alpha + n * beta) + n * gamma)


def double_tree(P: int, n: float, alpha: float, beta: float, chunks: int) -> float:
    """Return an upper bound on the time of an all-reduce over two complementary trees; `chunks` are sent one by one.

    A rank moves the vector twice. Each level of a tree, up and then down again, begins one chunk after the level
    before.
    """
    return 2 * n * beta * (1 + rounds(P) / chunks) + (2 * rounds(P) + chunks - 1) * alpha


def hierarchical(
    nodes: int, ranks: int, n: float, within: tuple[float, float], between: tuple[float, float], nics: int = 1
) -> float:
    """Return the time of an all-reduce over `nodes` nodes of `ranks` ranks each. It is a reduce-scatter in each node, a
    ring between nodes for each piece, and an all-gather in each node.

    `within` and `between` are (alpha, beta) of the links. A node has `nics` ports in each direction, and every port is
    shared by the same number of ranks.
    """
    (alpha, beta), (far, slow) = within, between
    inside = 2 * (ranks - 1) * (alpha + n / ranks * beta)
    if nodes == 1:
        return inside
    piece, sharing = n / ranks / nodes * slow, ranks // nics  # messages that share a port leave in turn
    return inside + far + sharing * piece + (2 * nodes - 3) * max(far + piece, sharing * piece)


def leaving(nodes: int, ranks: int) -> float:
    """Return the fraction of a hierarchical all-reduce's traffic that leaves its node."""
    return (nodes - 1) / (nodes * ranks - 1)


def torus(sides: tuple[int, ...], n: float, alpha: float, beta: float) -> float:
    """Return the time of an all-reduce on a grid of ranks, by a ring along each side. It sends as many bytes as a
    single ring, but fewer messages.
    """
    P, steps = 1, 0
    for side in sides:
        P, steps = P * side, steps + 2 * (side - 1)
    return steps * alpha + share(P) * n * beta


def all_to_all(P: int, n: float, alpha: float, beta: float) -> float:
    """Return the time of an all-to-all: every rank sends 1/P of its n bytes to each other rank, one message after
    another.
    """
    return (P - 1) * (alpha + n / P * beta)


def time(algorithm: str, P: int, n: float, alpha: float, beta: float, gamma: float = 0.0) -> float:
    """Return the time of an all-reduce in s. `algorithm` is one of `cluster.collectives.ALL_REDUCE`; "fast" is the
    ring.
    """
    forms = {"fast": ring, "ring": ring, "recursive_doubling": recursive_doubling}
    return (forms | {"halving_doubling": halving_doubling, "tree": tree})[algorithm](P, n, alpha, beta, gamma)


def doubling_up_to(P: int, alpha: float, beta: float, instead_of: str) -> float:
    """Return the largest vector, in bytes, for which recursive doubling is faster than `instead_of`, which is "ring" or
    "halving_doubling".

    P must be a power of two above 2.
    """
    messages = {"ring": 2 * (P - 1), "halving_doubling": 2 * log2(P)}[instead_of]
    return alpha * (messages - log2(P)) / (beta * (log2(P) - share(P)))


# parameter servers


def server(P: int, n: float, alpha: float, beta: float, shards: int = 1, server_beta: float | None = None) -> float:
    """Return the time that P workers take to push to `shards` servers and then pull from them. Each server holds a
    shard of the vector.
    """
    return 2 * max(n * beta, P * n / shards * (beta if server_beta is None else server_beta)) + 2 * alpha


def colocated_servers(P: int, n: float, alpha: float, beta: float) -> float:
    """Return the time of a push and a pull if every worker also serves 1/P of the vector. It sends as many bytes as the
    ring, with the latency of only two messages.
    """
    return 2 * alpha + share(P) * n * beta
