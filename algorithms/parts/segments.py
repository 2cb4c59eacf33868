"""Runs: pieces of a gradient that share something - a scale, two means - and what each part of it has of them."""

from __future__ import annotations

import numpy as np

import kernels


class Segments:
    """Consecutive runs of these lengths.

    >>> Runs([4, 5, 1]).within(slice(2, 9), np.zeros(0))
    (slice(0, 2, None), array([0, 2, 7]))
    """

    def __init__(self, lengths):
        self._edges = np.cumsum([0, *lengths])
        self._known: dict = {}

    def within(self, part: slice, like) -> tuple[slice, np.ndarray]:
        """The runs that `part` of the vector touches, and the edges of what it has of them, on the device of `like`."""
        if (part.start, part.stop) not in self._known:
            first = int(np.searchsorted(self._edges, part.start, "right")) - 1
            last = int(np.searchsorted(self._edges, part.stop, "left"))
            inside = np.clip(self._edges[first : last + 1], part.start, part.stop) - part.start
            self._known[part.start, part.stop] = slice(first, first + len(inside) - 1), kernels.beside(inside, like)
        return self._known[part.start, part.stop]

    def edges(self, part: slice, like):
        """Only these edges."""
        return self.within(part, like)[1]


def of_tensors(tensors) -> Segments:
    """Every tensor is a run."""
    return Segments([place.stop - place.start for place, _ in tensors])
