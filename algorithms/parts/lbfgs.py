"""Compute the direction of an L-BFGS step from the last m steps and the changes of the gradient along them.

With s_j = w_(j+1) - w_j, y_j = g_(j+1) - g_j and rho_j = 1 / (y_j . s_j), newest last:

    q <- g             for j newest to oldest:    a_j = rho_j (s_j . q)        q <- q - a_j y_j
    r <- gamma q       for j oldest to newest:    b = rho_j (y_j . r)          r <- r + (a_j - b) s_j
    p <- -r            gamma = (s . y) / (y . y) of the newest pair

The recursion accesses vectors by name only, through dot, axpy, scale and copy, so they may be in this process, or
sharded over servers that each do their part of every operation.
Source: Nocedal, Mathematics of Computation 35, 1980; Liu & Nocedal, Mathematical Programming 45, 1989.
"""

from collections.abc import Callable
from typing import Protocol


class Vectors(Protocol):
    """Vectors of one length, accessed by name."""

    def dot(self, x, y) -> float:
        """Return x . y."""

    def axpy(self, a: float, x, y) -> None:
        """y <- y + a x"""

    def scale(self, a: float, x) -> None:
        """x <- a x"""

    def copy(self, x, y) -> None:
        """y <- x"""


def direction(vectors: Vectors, g, p, pairs: list[tuple]) -> None:
    """Write the quasi-Newton direction at gradient g to p.

    `pairs` are the (s, y), newest last. Without pairs, p <- -g.
    """
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


def backtrack(
    vectors: Vectors, evaluate: Callable, f: float, slope: float, t: float, rounding: float, w: tuple, p
) -> float:
    """Set w to w0 + t p, halving t until f has fallen by 1e-4 t |slope| (Armijo). Return f at the new w.

    w is the pair of names (w, w0); evaluate() returns f at w; changes below `rounding` cannot be measured.
    """
    for _ in range(30):
        vectors.copy(w[1], w[0])
        vectors.axpy(t, p, w[0])
        there = evaluate()
        if not there > f + 1e-4 * t * slope or abs(t * slope) < rounding:
            break  # f has fallen, or cannot measurably fall; NaN is left to the task
        t /= 2
    return there


def remember(vectors: Vectors, pairs: list[tuple], unused: list[tuple], w: tuple, g: tuple) -> None:
    """Append the pair of the last step to `pairs`, if its curvature is positive.

    w and g are names (new, old) of the parameters and the gradient. The pair's names are taken from `unused`, or from
    the oldest pair if `unused` is empty.
    """
    s, y = unused.pop() if unused else pairs.pop(0)
    for (new, old), change in ((w, s), (g, y)):
        vectors.copy(new, change)
        vectors.axpy(-1.0, old, change)
    curved = vectors.dot(y, s) > 1e-10 * (vectors.dot(s, s) * vectors.dot(y, y)) ** 0.5
    (pairs if curved else unused).append((s, y))
