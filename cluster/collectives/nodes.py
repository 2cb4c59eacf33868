"""The hierarchical all-reduce: first among the ranks of a node, whose links are fast, then between nodes."""

import numpy as np

from cluster.collectives.rings import around, copy_pieces, sum_pieces
from cluster.comm import COLLECTIVE, Comm, shares


def hierarchical(comm: Comm, x: np.ndarray, scale: float = 1.0, tag: int = COLLECTIVE) -> None:
    """Sum x in place: a reduce-scatter in each node, a ring between nodes for each piece, an all-gather in each node.

    nodes [0 1] [2 3]       0 <> 1, 2 <> 3      rank 0 has piece 0 of its node's sum, rank 1 has piece 1
                            0 <> 2, 1 <> 3      piece by piece, the sum over all nodes
                            0 <> 1, 2 <> 3      all ranks have all pieces

    k nodes of g ranks send as few bytes as a flat ring, but only (k-1)/(P-1) of them between nodes, in 2 (k-1) messages
    per rank instead of 2 (P-1). If nodes differ in size, the ranks of smaller nodes handle several pieces.
    """
    groups: dict = {}
    for rank, node in enumerate(comm.nodes):
        groups.setdefault(node, []).append(rank)
    nodes, mates = list(groups.values()), groups[comm.nodes[comm.rank]]
    count = max(map(len, nodes))
    cuts = shares(len(x), count)
    kept = {
        r: deal for node in nodes for r, deal in zip(node, shares(count, len(node)), strict=True)
    }  # the pieces that each rank handles
    pieces = [x[cuts[kept[r].start].start : cuts[kept[r].stop - 1].stop] for r in mates]
    sum_pieces(comm, mates, pieces, scale, tag)
    for piece in range(count)[kept[comm.rank]]:
        keepers = [next(r for r in node if kept[r].start <= piece < kept[r].stop) for node in nodes]
        mine = x[cuts[piece]]
        around(comm, keepers, [mine[share] for share in shares(len(mine), len(keepers))], scale, tag)
    copy_pieces(comm, mates, pieces, tag)
