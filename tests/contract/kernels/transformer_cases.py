"""Arguments of the kernels of a transformer for a size n: mostly the number of samples, kept small, or of numbers."""

from __future__ import annotations

import numpy as np

from kernels.layers import gelu_forward
from tests.contract.kernels.layer_cases import normal, tables

TIME, WIDTH, HEADS, TOKENS = 5, 6, 2, 7


def _samples(n: int) -> int:
    return min(n, 3)


def embedding_forward(rng, n, dtype):
    n = _samples(n)
    y, table, places = normal(rng, dtype, (n, TIME, WIDTH), (TOKENS, WIDTH), (TIME, WIDTH))
    return y, rng.integers(0, TOKENS, (n, TIME)), table, places


def embedding_backward_weights(rng, n, dtype):
    n, tokens = _samples(n), 3  # a block of 1,024 threads for each
    dtable, dplaces, dy = normal(rng, dtype, (tokens, WIDTH), (TIME, WIDTH), (n, TIME, WIDTH))
    return dtable, dplaces, rng.integers(0, tokens - 1, (n, TIME)), dy  # the last token never comes


def attention_forward(rng, n, dtype):
    n = _samples(n)
    p = np.full((n, HEADS, TIME, TIME), np.nan, dtype)
    return (*normal(rng, dtype, (n, TIME, WIDTH)), p, *normal(rng, dtype, *[(n, TIME, WIDTH)] * 3))


def attention_backward(rng, n, dtype):
    n = _samples(n)
    p = np.tril(rng.random((n, HEADS, TIME, TIME))).astype(dtype)
    grown = normal(rng, dtype, *[(n, TIME, WIDTH)] * 7)
    return (*grown[:4], p, *grown[4:])


def attention_block(rng, n, dtype):
    """Arrays of TIME queries and 4 keys, and how many keys each query sees: none, some, all."""
    n, keys, seen = _samples(n), 4, np.array([0, 1, 4, 2, 4])
    y, q, k, v = normal(rng, dtype, *[(n, TIME, WIDTH)] * 2, *[(n, keys, WIDTH)] * 2)
    (total,) = normal(rng, dtype, (n, HEADS, TIME))
    return y, total, q, k, v, seen, float(seen.sum())


def attention_block_forward(rng, n, dtype):
    y, total, *rest = attention_block(rng, n, dtype)
    total[:, :, 2] = -np.inf  # this query has seen no key before
    return y, total, *rest


def attention_block_backward(rng, n, dtype):
    y, total, q, k, *rest = attention_block(rng, n, dtype)
    return *normal(rng, dtype, q.shape, k.shape, k.shape, y.shape), y, total + 3, q, k, *rest


def layer_norm_forward(rng, n, dtype):
    n = min(n, 65)
    y, u, r, x, gain, bias = normal(rng, dtype, (n, 7), (n, 7), (n,), (n, 7), (7,), (7,))
    return y, u, r, 2 * x + 5, gain, bias, 1e-5


def layer_norm_backward_input(rng, n, dtype):
    n = min(n, 65)
    dx, dy, u, r, gain = normal(rng, dtype, (n, 7), (n, 7), (n, 7), (n,), (7,))
    return dx, dy, u, r**2 + 1, gain


def layer_norm_backward_weights(rng, n, dtype):
    n = min(n, 65)
    return normal(rng, dtype, (7,), (7,), (n, 7), (n, 7))


def gelu_backward(rng, n, dtype):
    dz, dy, z = tables(3)(rng, n, dtype)
    z[n // 2 : n // 2 + 1] = 0
    y = np.empty_like(z)
    gelu_forward.reference(y, z)
    return dz, dy, z, y


TRANSFORMER = {
    "embedding_forward": embedding_forward,
    "embedding_backward_weights": embedding_backward_weights,
    "attention_forward": attention_forward,
    "attention_backward": attention_backward,
    "attention_block_forward": attention_block_forward,
    "attention_block_backward": attention_block_backward,
    "layer_norm_forward": layer_norm_forward,
    "layer_norm_backward_input": layer_norm_backward_input,
    "layer_norm_backward_weights": layer_norm_backward_weights,
    "gelu_forward": tables(2),
    "gelu_backward": gelu_backward,
}
