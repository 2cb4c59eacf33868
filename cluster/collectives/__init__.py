"""Collectives: operations that all ranks of a group perform together, built from send and recv.

Each function is one algorithm on a communicator with `rank`, `size`, `send` and `recv`. P is the number of ranks, a the
latency and b the seconds per byte of a link, n the bytes of the vector.

    all-reduce            messages per rank   time, ranks arriving together      best for
    ring                  2 (P-1)             2 (P-1) a + 2 (P-1)/P n b          long vectors, any P
    recursive doubling    log2 P              log2 P (a + n b)                   short vectors
    halving/doubling      2 log2 P            2 log2 P a + 2 (P-1)/P n b         long vectors, P a power of two
    tree                  2 log2 P            2 ceil(log2 P) (a + n b)           the root has the sum first
    double tree           a few per chunk     about 2 n b + 2 log2 P a           long vectors, many ranks
    hierarchical          2 (g-1) + 2 (k-1)   see theory.collective_costs                  k nodes of g ranks

All of them accept any P. Sums are formed in a fixed order, the same on every rank, so all ranks end with identical
bits. The order, and thus the rounding, differs between algorithms. Closed forms are in `theory.collective_costs`.

    rings.py       ring, reduce_scatter, all_gather
    exchanges.py   recursive_doubling, halving_doubling, all_to_all, barrier
    trees.py       tree, broadcast, double_tree
    nodes.py       hierarchical
    summands.py    the parts of a sum that ranks send to each other

Source: Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Patarasuk & Yuan, JPDC 69(2), 2009; Sanders, Speck & Traeff,
Parallel Computing 35(12), 2009.
"""

from collections.abc import Callable

from cluster.collectives.exchanges import all_to_all as all_to_all
from cluster.collectives.exchanges import barrier as barrier
from cluster.collectives.exchanges import halving_doubling, recursive_doubling
from cluster.collectives.nodes import hierarchical
from cluster.collectives.rings import all_gather as all_gather
from cluster.collectives.rings import reduce_scatter as reduce_scatter
from cluster.collectives.rings import ring
from cluster.collectives.trees import broadcast as broadcast
from cluster.collectives.trees import double_tree, tree
from cluster.comm import COLLECTIVE as COLLECTIVE

ALL_REDUCE: dict[str, Callable] = {
    "ring": ring,
    "recursive_doubling": recursive_doubling,
    "halving_doubling": halving_doubling,
    "tree": tree,
    "double_tree": double_tree,
    "hierarchical": hierarchical,
}


def idea(name: str) -> str:
    """Return a one-line description of how an all-reduce works, from its function's docstring."""
    said = (ALL_REDUCE[name].__doc__ or "").partition("\n")[0].partition(": ")[2]
    return said[:1].upper() + said[1:]


def check_name(name: str, own: tuple[str, ...] = ("fast",)) -> str:
    """Return `name`, the name of an all-reduce.

    Raise ValueError if it is neither in ALL_REDUCE nor in `own`, the names that only this cluster offers.
    """
    if name not in (*own, *ALL_REDUCE):
        raise ValueError(f"collective: there is no {name!r}; use one of {', '.join((*own, *ALL_REDUCE))}.")
    return name
