"""The plane along a path's two main directions, and the loss on it.

    directions    the two along which the models x_i lie farthest from the final model w: the leading right singular
                  vectors of the rows x_i - w
    coordinates   of x: (x - w) . directions, its projection on the plane through w
    share         of the sum of |x_i - w|^2 that the plane holds: 1 where the path lies in it

The plane goes through the final model, so the loss there is the model's own. A model of two parameters is its own
plane, with the parameters as axes.

A random walk in many dimensions gives smooth cosines in the same picture, so a curved path alone means little.

Source: Li, Xu, Taylor, Studer & Goldstein, NeurIPS 2018, arXiv:1712.09913.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

CHOSEN = 256  # models from which the directions are computed, at most
ASPECT = 4 / 3  # of the picture: width over height
NARROW, LINE = (
    3.0,
    30.0,
)  # a path this many times narrower than the picture is stretched; from LINE on it is treated as a line
AROUND = 0.22  # margin around the path, as a share of its extent
AREAS = 11  # number of areas between the contours of the ground


class Plane(NamedTuple):
    """A plane through `origin`, (d,), along two orthonormal `directions`, (2, d)."""

    origin: np.ndarray
    directions: np.ndarray
    shares: tuple[float, float]

    def coordinates(self, models: Sequence[np.ndarray]) -> np.ndarray:
        """Return the coordinates (n, 2) of these models."""
        found = [self.directions @ (np.asarray(x, float) - self.origin) for x in models]
        return np.array(found).reshape(-1, 2)

    def model(self, u: float, v: float) -> np.ndarray:
        """Return the model (d,) at a point of the plane."""
        return self.origin + u * self.directions[0] + v * self.directions[1]


def through(models: Sequence[np.ndarray], final: np.ndarray) -> Plane:
    """Return the plane through the model `final` along the main directions of the path `models`, in order of time.

    The path begins on the left, and most of it is above the axis. Raise ValueError for a model of one parameter.
    """
    d = len(final)
    if d == 1:
        raise ValueError("a model of one parameter has no plane; use a dimension of 2 or more to see its path.")
    chosen = [models[i] for i in np.unique(np.linspace(0, len(models) - 1, min(CHOSEN, len(models))).astype(int))]
    rows = np.array([np.asarray(x, float) - final for x in chosen])
    if d == 2:
        shares = np.square(rows).sum(0) / (np.square(rows).sum() or 1.0)
        return Plane(np.asarray(final, float), np.eye(2), (float(shares[0]), float(shares[1])))
    values, vectors = np.linalg.eigh(rows @ rows.T)
    total = float(values.clip(0).sum()) or 1.0
    found: list[np.ndarray] = []
    for value, vector in zip(values[::-1][:2], vectors.T[::-1][:2], strict=False):
        if value > 1e-12 * total:
            found.append(_unit(rows.T @ vector, found))
    draw = np.random.default_rng(0)
    while len(found) < 2:  # the path is a line: any second direction will do
        found.append(_unit(draw.standard_normal(d), found))
    directions = np.array(found)
    seen = rows @ directions.T
    directions[0] *= -1 if seen[0, 0] > 0 else 1
    directions[1] *= -1 if seen[:, 1].sum() < 0 else 1
    shares = np.square(seen).sum(0) / (np.square(rows).sum() or 1.0)
    return Plane(np.asarray(final, float), directions, (float(shares[0]), float(shares[1])))


def _unit(vector: np.ndarray, others: list[np.ndarray]) -> np.ndarray:
    for other in others:
        vector = vector - (vector @ other) * other
    return vector / np.linalg.norm(vector)


class Ground(NamedTuple):
    """The loss on a grid over the plane.

    `loss` (rows, columns) has the lowest row first. `box` (left, right, bottom, top) reaches from the centre of the
    first cell to the centre of the last. `stretch` is how many times longer an upward unit is than one to the right.
    """

    box: tuple[float, float, float, float]
    loss: np.ndarray
    stretch: float


def ground(plane: Plane, points: np.ndarray, loss: Callable[[np.ndarray], float], cells: int, tell=None) -> Ground:
    """Return the loss on a grid of about `cells` cells of the plane, around `points`, (n, 2).

    tell(part) is called after each row. A path much narrower than the picture is stretched across it.
    """
    low, high = points.min(0), points.max(0)
    half = np.maximum((high - low) / 2, 1e-6 * max(1.0, float(np.abs(points).max()))) * (1 + 2 * AROUND)
    middle = (low + high) / 2
    stretch = 1.0
    narrower = float(half[0] / half[1] / ASPECT)
    if NARROW < max(narrower, 1 / narrower) < LINE:
        stretch = narrower
    else:
        half = np.maximum(half, [half[1] * ASPECT, half[0] / ASPECT])
    rows = max(9, round((cells / ASPECT) ** 0.5))
    columns = round(rows * ASPECT)
    us = np.linspace(middle[0] - half[0], middle[0] + half[0], columns)
    vs = np.linspace(middle[1] - half[1], middle[1] + half[1], rows)
    table = np.empty((rows, columns))
    for row, v in enumerate(vs):
        table[row] = [loss(plane.model(u, v)) for u in us]
        if tell:
            tell((row + 1) / rows)
    return Ground((float(us[0]), float(us[-1]), float(vs[0]), float(vs[-1])), table, stretch)


def levels(loss: np.ndarray) -> list[float]:
    """Return the losses at which contours divide the grid into AREAS parts of equal area, rounded to two significant
    digits.
    """
    known = loss[np.isfinite(loss)]
    if not len(known):
        return []
    found = np.quantile(known, np.arange(1, AREAS) / AREAS)
    return list(dict.fromkeys(float(f"{value:.2g}") for value in found))
