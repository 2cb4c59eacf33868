"""Consecutive segments of a gradient, each with its own scale or means, and the segments in a part of the gradient."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

import kernels


class Segments:
    """Consecutive segments of a vector, with these lengths.

    >>> Segments([4, 5, 1]).within(slice(2, 9), np.zeros(0))
    (slice(0, 2, None), array([0, 2, 7]))
    """

    def __init__(self, lengths):
        self._edges = np.cumsum([0, *lengths])
        self._known: dict = {}

    def within(self, part: slice, like) -> tuple[slice, np.ndarray]:
        """Return (slice of the segments that overlap `part`, their edges within it, on the device of `like`)."""
        if (part.start, part.stop) not in self._known:
            first = int(np.searchsorted(self._edges, part.start, "right")) - 1
            last = int(np.searchsorted(self._edges, part.stop, "left"))
            inside = np.clip(self._edges[first : last + 1], part.start, part.stop) - part.start
            self._known[part.start, part.stop] = slice(first, first + len(inside) - 1), kernels.beside(inside, like)
        return self._known[part.start, part.stop]

    def edges(self, part: slice, like):
        return self.within(part, like)[1]


def tensor_segments(tensors) -> Segments:
    """Return segments of a model's gradient, one for each tensor."""
    return Segments([place.stop - place.start for place, _ in tensors])


def side_by_side(places: Sequence[slice]) -> list[slice]:
    """Return the position of each slice in a vector that consists of only these slices, one after the other.

    >>> side_by_side([slice(4, 7), slice(9, 11)])
    [slice(0, 3, None), slice(3, 5, None)]
    """
    edges = accumulate((place.stop - place.start for place in places), initial=0)
    return [slice(a, b) for a, b in pairwise(edges)]
