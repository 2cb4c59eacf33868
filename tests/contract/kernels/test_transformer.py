"""Kernels of a transformer against torch's in float64, and what is their own: causality, extremes, prices."""

from __future__ import annotations

import numpy as np
import pytest

import kernels
from tests.contract.kernels.test_layers import close, normal, torch_gradients

RNG = np.random.default_rng(1)
N, TIME, WIDTH, HEADS = 3, 7, 6, 2


def attend(q, k, v, heads=HEADS):
    """(y, p)."""
    y, p = np.empty_like(q), np.empty((len(q), heads, q.shape[1], q.shape[1]), q.dtype)
    kernels.attention_forward(y, p, q, k, v)
    return y, p


@pytest.mark.parametrize("heads", [1, 2, 6])
def test_attention_goes_forward_and_backward_as_in_torch(heads):
    def attention(torch, *inputs):
        q, k, v = (x.reshape(N, TIME, heads, WIDTH // heads).transpose(1, 2) for x in inputs)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(N, TIME, WIDTH)

    q, k, v = (normal(N, TIME, WIDTH) for _ in range(3))
    expected, dy, gradients = torch_gradients(attention, q, k, v)
    y, p = attend(q, k, v, heads)
    dq, dk, dv = (np.empty_like(q) for _ in range(3))
    kernels.attention_backward(dq, dk, dv, dy, p, q, k, v)
    for ours, theirs in zip((y, dq, dk, dv), (expected, *gradients), strict=True):
        close(ours, theirs)


def test_what_comes_later_changes_no_bit_of_what_was_before():
    q, k, v = (normal(N, TIME, WIDTH) for _ in range(3))
    y, _ = attend(q, k, v)
    for x in (q, k, v):
        x[:, 4:] += 100
    later, _ = attend(q, k, v)
    np.testing.assert_array_equal(later[:, :4], y[:, :4])
    assert not np.array_equal(later[:, 4:], y[:, 4:])


def test_each_position_shares_itself_out_among_those_before_it_and_itself():
    _, p = attend(*(normal(N, TIME, WIDTH) for _ in range(3)))
    close(p.sum(3), np.ones((N, HEADS, TIME)))
    assert not np.triu(p, 1).any()
    assert (np.tril(p)[..., np.tri(TIME, dtype=bool)] > 0).all()


def test_attention_to_products_too_large_for_an_exponential_is_finite():
    q, k, v = np.full((1, 3, 1), 1e3), np.array([[[-1e3], [1e3], [1e3]]]), np.array([[[1.0], [2.0], [3.0]]])
    y, p = attend(q, k, v, heads=1)
    np.testing.assert_array_equal(p[0, 0], [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]])
    np.testing.assert_array_equal(y.ravel(), [1, 2, 2.5])


def test_a_nan_is_seen_by_all_that_look_at_it_and_by_nobody_before():
    q, k, v = (normal(1, TIME, WIDTH) for _ in range(3))
    k[0, 4, 0] = np.nan
    y, _ = attend(q, k, v, heads=1)
    assert np.isnan(y[0, 4:]).all() and np.isfinite(y[0, :4]).all()


def test_a_nan_among_the_values_or_gradients_reaches_nobody_who_does_not_see_it():
    q, k, v, dy = (normal(1, TIME, WIDTH) for _ in range(4))
    _, p = attend(q, k, v, heads=1)
    dq, dk, dv = (np.empty_like(q) for _ in range(3))
    odd = v.copy()
    odd[0, 4, 0] = np.nan
    y, _ = attend(q, k, odd, heads=1)
    assert np.isnan(y[0, 4:, 0]).all() and np.isfinite(y[0, :4]).all()
    dy[0, 2, 0] = np.nan
    kernels.attention_backward(dq, dk, dv, dy, p, q, k, v)
    assert np.isfinite(dv[0, 3:]).all() and np.isnan(dv[0, :3, 0]).all()
    assert np.isfinite(dq[0, [0, 1, *range(3, TIME)]]).all() and np.isfinite(dk[0, 3:]).all()


def in_blocks(q, k, v, order, heads=HEADS):
    """Attention to blocks of keys in this order: (y, total, the blocks as (slice, seen, pairs))."""
    y, total = np.full_like(q, np.nan), np.full((len(q), heads, q.shape[1]), -np.inf)
    blocks = []
    for keys in order:
        seen = np.clip(np.arange(1, q.shape[1] + 1) - keys.start, 0, keys.stop - keys.start)
        blocks.append((keys, seen, float(seen.sum() - (keys.stop - keys.start) / 2)))
        some = (x[:, keys].copy() for x in (k, v))
        kernels.attention_block_forward(y, total, q, *some, *blocks[-1][1:])
    return y, total, blocks


PIECES = slice(0, 2), slice(2, 5), slice(5, TIME)


@pytest.mark.parametrize(
    "order", [PIECES, PIECES[::-1], (PIECES[1], PIECES[2], PIECES[0])], ids=["as they come", "reversed", "mixed"]
)
def test_attention_to_blocks_of_keys_in_any_order_is_attention_to_all_forward_and_backward(order):
    q, k, v, dy = (normal(N, TIME, WIDTH) for _ in range(4))
    whole, p = attend(q, k, v)
    expected = [np.empty_like(q) for _ in range(3)]
    kernels.attention_backward(*expected, dy, p, q, k, v)

    y, total, blocks = in_blocks(q, k, v, order)
    dq, dk, dv = (np.zeros_like(q) for _ in range(3))
    for keys, seen, pairs in blocks:
        slopes, some = [dx[:, keys].copy() for dx in (dk, dv)], (x[:, keys].copy() for x in (k, v))
        kernels.attention_block_backward(dq, *slopes, dy, y, total, q, *some, seen, pairs)
        dk[:, keys], dv[:, keys] = slopes
    for ours, theirs in zip((y, dq, dk, dv), (whole, *expected), strict=True):
        close(ours, theirs)


def test_the_blocks_of_a_causal_square_cost_as_many_flops_as_the_square():
    q, k, v = (normal(N, TIME, WIDTH) for _ in range(3))
    y, total, blocks = in_blocks(q, k, v, PIECES)
    price = kernels.attention_block_forward.module.price
    parts = [price(y, total, q, k[:, keys], v[:, keys], seen, pairs)[0] for keys, seen, pairs in blocks]
    _, p = attend(q, k, v)
    assert sum(parts) == kernels.attention_forward.module.price(y, p, q, k, v)[0]


def test_a_nan_in_a_block_reaches_those_alone_that_see_it():
    q, k, v, dy = (normal(1, TIME, WIDTH) for _ in range(4))
    k[0, 3, 0] = np.nan
    y, _, _ = in_blocks(q, k, v, PIECES, heads=1)
    assert np.isfinite(y[0, :3]).all() and np.isnan(y[0, 3:]).all()
    k[0, 3, 0], v[0, 3, 0], dy[0, 4, 0] = 0, np.nan, np.nan
    y, total, blocks = in_blocks(q, k, v, PIECES, heads=1)
    assert np.isfinite(y[0, :3]).all() and np.isnan(y[0, 3:, 0]).all()
    keys, seen, pairs = blocks[1]
    dq, dk, dv = np.zeros_like(q), *(np.zeros((1, 3, WIDTH)) for _ in range(2))
    some = (x[:, keys].copy() for x in (k, v))
    kernels.attention_block_backward(dq, dk, dv, dy, y, total, q, *some, seen, pairs)
    assert np.isfinite(dq[0, :3]).all() and np.isnan(dv[0, :, 0]).all() and np.isfinite(dv[0, :, 1:]).all()


def test_layer_norm_goes_forward_and_backward_as_in_torch():
    x, gain, bias = 3 * normal(8, WIDTH) + 5, normal(WIDTH), normal(WIDTH)
    expected, dy, (dx0, dgain0, dbias0) = torch_gradients(
        lambda torch, x, gain, bias: torch.nn.functional.layer_norm(x, (WIDTH,), gain, bias, 1e-5), x, gain, bias
    )
    y, u, dx, r, dgain, dbias = *(np.empty_like(x) for _ in range(3)), np.empty(8), np.empty(WIDTH), np.empty(WIDTH)
    kernels.layer_norm_forward(y, u, r, x, gain, bias, 1e-5)
    kernels.layer_norm_backward_input(dx, dy, u, r, gain)
    kernels.layer_norm_backward_weights(dgain, dbias, dy, u)
    for ours, theirs in ((y, expected), (dx, dx0), (dgain, dgain0), (dbias, dbias0)):
        close(ours, theirs)


def test_a_row_of_equal_numbers_is_normed_to_nothing():
    x, u, r = np.full((1, 4), 7.0), np.empty((1, 4)), np.empty(1)
    y = np.empty_like(x)
    kernels.layer_norm_forward(y, u, r, x, np.full(4, 2.0), np.arange(4.0), 1e-5)
    np.testing.assert_array_equal(y, [np.arange(4)])


def test_gelu_goes_forward_and_backward_as_torch_s_tanh_form():
    z = 3 * normal(40)
    expected, dy, (dz0,) = torch_gradients(lambda torch, z: torch.nn.functional.gelu(z, approximate="tanh"), z)
    y, dz = np.empty_like(z), np.empty_like(z)
    kernels.gelu_forward(y, z)
    kernels.gelu_backward(dz, dy, z, y)
    close(y, expected)
    close(dz, dz0)


def test_gelu_is_near_the_exact_form():
    torch = pytest.importorskip("torch")
    z = np.linspace(-8, 8, 4001)
    y = np.empty_like(z)
    kernels.gelu_forward(y, z)
    assert 1e-4 < np.abs(y - torch.nn.functional.gelu(torch.from_numpy(z)).numpy()).max() < 5e-4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gelu_lets_large_numbers_pass_and_stops_very_negative_ones(dtype):
    z = np.array([-1e6, -50, 0, 50, 1e6], dtype)
    y, dz = np.empty_like(z), np.empty_like(z)
    kernels.gelu_forward(y, z)
    kernels.gelu_backward(dz, np.ones_like(z), z, y)
    np.testing.assert_array_equal(y, [0, 0, 0, 50, 1e6])
    np.testing.assert_array_equal(dz, [0, 0, 0.5, 1, 1])


def test_an_embedding_goes_forward_and_backward_as_in_torch():
    x, table, places = RNG.integers(0, 4, (N, TIME)), normal(5, WIDTH), normal(TIME, WIDTH)
    expected, dy, (dtable0, dplaces0) = torch_gradients(
        lambda torch, table, places: torch.nn.functional.embedding(torch.from_numpy(x), table) + places, table, places
    )
    y, dtable, dplaces = np.empty((N, TIME, WIDTH)), np.empty_like(table), np.empty_like(places)
    kernels.embedding_forward(y, x, table, places)
    kernels.embedding_backward_weights(dtable, dplaces, x, dy)
    for ours, theirs in ((y, expected), (dtable, dtable0), (dplaces, dplaces0)):
        close(ours, theirs)


def test_attention_costs_4_s_s_h_forward_and_8_s_s_h_backward_beside_its_softmax():
    n, s, h, a = 2, 16, 32, 4
    x, p = np.empty((n, s, h)), np.empty((n, a, s, s))
    assert kernels.attention_forward.price(x, p, x, x, x)[0] == 4 * n * s * s * h + 8 * n * a * s * s
    assert kernels.attention_backward.price(x, x, x, x, p, x, x, x)[0] == 8 * n * s * s * h + 5 * n * a * s * s


def test_a_transformer_s_kernels_move_each_of_their_arrays_once():
    x, p, rows, r, one = np.empty((2, 5, 6)), np.empty((2, 3, 5, 5)), np.empty((10, 6)), np.empty(10), np.empty(6)
    tokens, table, places = np.zeros((2, 5), int), np.empty((7, 6)), np.empty((5, 6))
    for kernel, args in (
        (kernels.attention_forward, (x, p, x, x, x)),
        (kernels.attention_backward, (x, x, x, x, p, x, x, x)),
        (kernels.layer_norm_forward, (rows, rows, r, rows, one, one, 1e-5)),
        (kernels.layer_norm_backward_input, (rows, rows, rows, r, one)),
        (kernels.layer_norm_backward_weights, (one, one, rows, rows)),
        (kernels.embedding_backward_weights, (table, places, tokens, x)),
    ):
        assert kernel.price(*args)[1] == sum(a.size for a in args if isinstance(a, np.ndarray))
    assert kernels.embedding_forward.price(x, tokens, table, places)[1] == 2 * x.size + tokens.size + places.size
