"""Arguments of the kernels of mixtures of experts for a size n, the number of tokens; each chooses two of four."""

from __future__ import annotations

import numpy as np

from tests.contract.kernels.layer_cases import normal

EXPERTS, CHOSEN, WIDTH = 4, 2, 5


def route_forward(rng, n, dtype):
    z, p, weight = normal(rng, dtype, (n, EXPERTS), (n, EXPERTS), (n, CHOSEN))
    return p, weight, np.zeros((n, CHOSEN), np.int64), z.round(1)  # rounded: several are the largest


def route_backward(rng, n, dtype):
    dz, dweight, p, weight = normal(rng, dtype, (n, EXPERTS), (n, CHOSEN), (n, EXPERTS), (n, CHOSEN))
    chosen = np.array([rng.permutation(EXPERTS)[:CHOSEN] for _ in range(n)], np.int64).reshape(n, CHOSEN)
    return dz, dweight, p, weight, chosen, *normal(rng, dtype, (EXPERTS,)), 0.3


def places(rng, n):
    """A place for five of six choices."""
    place = np.full(n * CHOSEN, -1)
    taken = np.flatnonzero(np.arange(n * CHOSEN) % 6 != 3)
    place[rng.permutation(taken)] = np.arange(len(taken))
    return place.reshape(n, CHOSEN), len(taken)


def dispatch_rows(rng, n, dtype):
    n = min(n, 65)
    place, rows = places(rng, n)
    return *normal(rng, dtype, (rows, WIDTH), (n, WIDTH)), place


def combine_rows(rng, n, dtype):
    rows, x, place = dispatch_rows(rng, n, dtype)
    y, weight = normal(rng, dtype, x.shape, place.shape)
    return y, x, rows, place, weight


def combine_rows_backward(rng, n, dtype):
    dy, _, rows, place, weight = combine_rows(rng, n, dtype)
    return *normal(rng, dtype, rows.shape, weight.shape), dy, rows, place, weight


MIXTURES = {
    "route_forward": route_forward,
    "route_backward": route_backward,
    "dispatch_rows": dispatch_rows,
    "combine_rows": combine_rows,
    "combine_rows_backward": combine_rows_backward,
}
