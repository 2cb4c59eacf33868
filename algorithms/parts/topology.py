"""Graphs of neighbours, their mixing matrices, and how fast all ranks come to agree.

A topology is a pure function from the number of ranks to the neighbours of each rank; edges are undirected. Row i of
its mixing matrix W has the weights with which rank i averages: W is symmetric, and its rows and columns sum to 1, so
mixing leaves the mean of all ranks unchanged. The spectral gap 1 - |second largest eigenvalue| gives the speed of
agreement: disagreement shrinks at least by the factor 1 - gap in every round.

    ring, 16 ranks    0.051      torus 4 x 4    0.4      exponential    0.5      complete    1

Source: Xiao & Boyd, Systems & Control Letters 53, 2004 (speed of agreement); Xiao, Boyd & Lall, IPSN 2005 (Metropolis
weights); Lian et al., NIPS 2017.
"""

import math
import re
from itertools import combinations
from typing import Literal

import numpy as np

Topology = Literal["ring", "torus", "exponential", "complete", "star", "random"]
Graph = list[list[int]]  # of each rank, sorted
FEW = 8  # ranks: above this, two named graphs are alike only if one is a torus


def ring(size: int) -> Graph:
    """Return a ring: each rank has a left and a right neighbour."""
    return _both_ways(size, ((rank, (rank + 1) % size) for rank in range(size)))


def torus(size: int) -> Graph:
    """Return a torus, as nearly square as `size` allows: up, down, left and right neighbours."""
    rows = max(n for n in range(1, math.isqrt(size) + 1) if size % n == 0)
    columns = size // rows
    right = ((rank, rank - rank % columns + (rank + 1) % columns) for rank in range(size))
    down = ((rank, (rank + columns) % size) for rank in range(size))
    return _both_ways(size, (*right, *down))


def exponential(size: int) -> Graph:
    """Return the graph that connects ranks at distance 1, 2, 4, ... along the ring."""
    distances = [1 << k for k in range(max(1, (size - 1).bit_length()))]
    return _both_ways(size, ((rank, (rank + distance) % size) for rank in range(size) for distance in distances))


def complete(size: int) -> Graph:
    return _both_ways(size, combinations(range(size), 2))


def star(size: int) -> Graph:
    """Return a star with rank 0 at its centre."""
    return _both_ways(size, ((0, rank) for rank in range(1, size)))


def random(size: int, degree: int = 3, seed: int = 0) -> Graph:
    """Return a graph with a ring, which keeps it connected, and random edges up to a mean degree of `degree`."""
    generator = np.random.default_rng([seed, 0x6047])
    edges = {frozenset((rank, (rank + 1) % size)) for rank in range(size)} - {frozenset((0,))}
    free = [pair for pair in combinations(range(size), 2) if frozenset(pair) not in edges]
    wanted = max(0, min(len(free), round(degree * size / 2) - len(edges)))
    more = [free[i] for i in generator.choice(len(free), wanted, replace=False)] if wanted else []
    return _both_ways(size, (*map(tuple, edges), *more))


def custom(size: int, text: str) -> Graph:
    """Return the graph of edges such as "0-1,1-2". Raise ValueError if they do not parse or do not connect all
    ranks.
    """
    if not re.fullmatch(r"\s*\d+\s*-\s*\d+\s*(,\s*\d+\s*-\s*\d+\s*)*", text):
        raise ValueError(f"edges is {text[:60]!r}; write pairs of workers, for example 0-1,1-2,2-0.")
    edges = [tuple(map(int, edge.split("-"))) for edge in text.split(",")]
    strangers = sorted({rank for edge in edges for rank in edge if rank >= size})
    if strangers:
        raise ValueError(f"edges name worker {strangers[0]}; with {size} workers they are 0 to {size - 1}.")
    found = _both_ways(size, edges)
    islands = components(found)
    if len(islands) > 1:
        raise ValueError(
            f"the graph is not connected: workers {', '.join(map(str, islands[1][:8]))} cannot be reached from worker "
            "0; "
            f"add an edge such as 0-{islands[1][0]}."
        )
    return found


def check_edges(workers, batch, workload, s) -> None:
    """Raise ValueError if the `edges` of settings s do not connect all workers. An algorithm's `check`."""
    if s.edges:
        custom(workers, s.edges)


def neighbours(name: Topology, size: int, edges: str = "") -> Graph:
    """Return the topology of this name, or the graph of `edges`. Raise ValueError if it is invalid."""
    if edges:
        return custom(size, edges)
    graphs = {
        "ring": ring, "torus": torus, "exponential": exponential, "complete": complete, "star": star, "random": random
    }  # fmt: skip
    return graphs[name](size)


def same_graph(name: Topology, size: int, edges: str = "") -> list[str]:
    """Return a list with one note if this topology is the same graph as another one (a torus of 7 ranks is a ring).

    Return [] if it is not, or if there are custom `edges`.
    """
    if size < 3 or edges or (size > FEW and name != "torus"):
        return []
    degrees = {len(others) for others in neighbours(name, size)}
    other = "complete" if degrees == {size - 1} else "ring" if degrees == {2} else name
    if other == name:
        return []
    called = {"ring": "a ring", "complete": "the complete graph"}[other]
    return [f"With {size} workers the {name} topology is {called}; use 8 or 9 workers to see a difference."]


def mixing(graph: Graph, lazy: bool = False) -> np.ndarray:
    """Return the Metropolis weights, (ranks, ranks): 1 / (1 + the larger of the two degrees) on every edge.

    On a ring they are 1/3. `lazy` ranks keep half of their own value: no eigenvalue is below 0.
    """
    size = len(graph)
    w = np.zeros((size, size))
    for rank, others in enumerate(graph):
        for other in others:
            w[rank, other] = 1 / (1 + max(len(others), len(graph[other])))
    w[np.diag_indices(size)] = 1 - w.sum(axis=1)
    return (np.eye(size) + w) / 2 if lazy else w


def spectral_gap(w: np.ndarray) -> float:
    """Return 1 - |e|, where e is the eigenvalue of a symmetric mixing matrix with the second largest magnitude.

    It is 0 if the graph is not connected, and 1 for a single rank.
    """
    if len(w) == 1:
        return 1.0
    sizes = np.sort(np.abs(np.linalg.eigvalsh(w)))
    return float(1 - sizes[-2])


def components(graph: Graph) -> list[list[int]]:
    """Return the connected components, each sorted, with that of rank 0 first."""
    left, parts = set(range(len(graph))), []
    while left:
        part, edge = set(), {min(left)}
        while edge:
            part |= edge
            edge = {other for rank in edge for other in graph[rank]} - part
        left -= part
        parts.append(sorted(part))
    return parts


def bipartition(graph: Graph) -> list[int]:
    """Return each rank's side, 0 or 1, such that the edges between the sides still connect all ranks.

    Sides are even and odd ranks if those do, else ranks at even and at odd distance from rank 0.
    """
    side = [rank % 2 for rank in range(len(graph))]
    if len(components(bipartite_subgraph(graph, side))) == 1:
        return side
    seen, edge, distance = {0}, {0}, 0
    while edge:
        for rank in edge:
            side[rank] = distance % 2
        edge = {other for rank in edge for other in graph[rank]} - seen
        seen |= edge
        distance += 1
    return side


def bipartite_subgraph(graph: Graph, side: list[int]) -> Graph:
    """Return the graph without the edges that join two ranks of the same side."""
    return [[other for other in others if side[other] != side[rank]] for rank, others in enumerate(graph)]


def _both_ways(size: int, edges) -> Graph:
    found: list[set[int]] = [set() for _ in range(size)]
    for a, b in edges:
        if a != b:
            found[a].add(b)
            found[b].add(a)
    return [sorted(others) for others in found]
