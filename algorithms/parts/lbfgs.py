"""L-BFGS: the direction of a quasi-Newton step, from the last m steps and their changes of the gradient.

With s_j = w_(j+1) - w_j, y_j = g_(j+1) - g_j and rho_j = 1 / (y_j . s_j), newest last:

    q <- g             for j newest to oldest:    a_j = rho_j (s_j . q)        q <- q - a_j y_j
    r <- gamma q       for j oldest to newest:    b = rho_j (y_j . r)          r <- r + (a_j - b) s_j
    p <- -r            gamma = (s . y) / (y . y) of the newest pair

The recursion accesses vectors by name only, through dot, axpy, scale and copy, so they may be in this process, or
sharded over servers that each do their part of every operation.
Source: Nocedal, Mathematics of Computation 35, 1980; Liu & Nocedal, Mathematical Programming 45, 1989.
"""

from __future__ import annotations

from typing import Protocol


class Vectors(Protocol):
    """Vectors of one length, accessed by name."""

    def dot(self, x, y) -> float:
        """x . y"""

    def axpy(self, a: float, x, y) -> None:
        """y <- y + a x"""

    def scale(self, a: float, x) -> None:
        """x <- a x"""

    def copy(self, x, y) -> None:
        """y <- x"""


def direction(vectors: Vectors, g, p, pairs: list[tuple]) -> None:
    """p <- the quasi-Newton direction at gradient g; `pairs` are the (s, y), newest last. Without pairs, p <- -g."""
    vectors.copy(g, p)
    steps = []
    for s, y in reversed(pairs):
        rho = 1 / vectors.dot(y, s)
        a = rho * vectors.dot(s, p)
        vectors.axpy(-a, y, p)
        steps.append((s, y, rho, a))
    if pairs:
        s, y = pairs[-1]
        vectors.scale(vectors.dot(s, y) / vectors.dot(y, y), p)
    for s, y, rho, a in reversed(steps):
        b = rho * vectors.dot(y, p)
        vectors.axpy(a - b, s, p)
    vectors.scale(-1.0, p)
