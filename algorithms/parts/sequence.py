"""Sequence pieces: which positions of every sequence a rank computes, and how to put whole sequences back together.

A rank has one piece of the sequence (consecutive), or two (zigzag): of 2 P equal pieces, rank r has pieces r and
2 P - 1 - r. In causal attention a position sees all earlier ones, so with consecutive pieces the last rank computes
almost twice the mean; with zigzag pieces all ranks compute equally much.
Source: Grattafiori et al., arXiv:2407.21783, section 3.3.2 (zigzag).
"""

from operator import itemgetter
from typing import Literal

import numpy as np

from kernels.arrays import concatenate, shares

Positions = Literal["zigzag", "consecutive"]


def pieces_of(rank: int, ranks: int, time: int, positions: Positions) -> list[slice]:
    """Return the pieces of `rank` as ascending slices of the `time` positions."""
    if positions == "consecutive":
        return [shares(time, ranks)[rank]]
    halves = shares(time, 2 * ranks)
    return [halves[rank], halves[-1 - rank]]


def indices_of(pieces: list[slice]) -> np.ndarray:
    """Return the positions in these pieces, in ascending order."""
    return np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])


def visible_prefix(queries: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, float]:
    """Return how many of the `keys` each query sees, and the number of query-key pairs.

    `queries` and `keys` are positions, `keys` in ascending order. A query sees earlier positions and its own, which
    counts as half a pair.
    """
    seen = np.searchsorted(keys, queries, side="right")
    return seen, float(seen.sum() - np.isin(queries, keys).sum() / 2)


def in_order(parts: list, pieces: list[list[slice]]):
    """Return whole sequences, (n, T, width), given each rank's part, (n, T/P, width), and each rank's pieces."""
    cut = [
        (piece.start, part[:, place])
        for part, own in zip(parts, pieces, strict=True)
        for piece, place in zip(own, shares(part.shape[1], len(own)), strict=True)
    ]
    return concatenate([part for _, part in sorted(cut, key=itemgetter(0))], axis=1)
