"""Attention to one block of keys, backward: add this block's part to the gradients of queries, keys and values.

    for each sample and head:    p = exp(s - total)          s = q k^T / sqrt(d) where the query sees the key
                                 dv += p^T dy          ds = p (dy v^T - sum over each row of y dy)
                                 dq += ds k / sqrt(d)          dk += ds^T q / sqrt(d)

Here y and total are from after the last block, so p is the softmax over all keys, and the weights need not be stored.
Shapes are those of attention_block_forward; dq, dy are (n, time, width); dk, dv are (n, keys, width). Every block adds
to dq, and other blocks of queries add to the same dk and dv.
Price: 20 n width FLOPs for each of the `pairs` and 26 n heads for its exponential, 2 n time width for the row sums;
every array once, the gradients twice.
Source: Dao et al., FlashAttention, NeurIPS 2022.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.layers.causal import from_seen, to_seen
from kernels.layers.exponential import exp
from kernels.shapes import shapes

check = shapes(
    "dq (n, time, width // heads * heads), dk (n, keys, width), dv (n, keys, width), dy (n, time, width), "
    "y (n, time, width), total (n, heads, time), q (n, time, width), k (n, keys, width), v (n, keys, width), "
    "seen (time)"
)


def price(dq, dk, dv, dy, y, total, q, k, v, seen, pairs):
    (n, time, width), heads = y.shape, total.shape[1]
    flops = pairs * n * (20 * width + 26 * heads) + 2 * n * time * width
    return flops, 5 * n * time * width + 6 * n * k.shape[1] * width


def reference(dq, dk, dv, dy, y, total, q, k, v, seen, pairs):
    n, heads, _ = total.shape
    dq, dk, dv, dy, y, q, k, v = (
        x.reshape(n, x.shape[1], heads, x.shape[2] // heads).swapaxes(1, 2) for x in (dq, dk, dv, dy, y, q, k, v)
    )
    scale = 1 / math.sqrt(q.shape[3])
    for i, count in enumerate(seen):
        one, some = slice(i, i + 1), slice(count)
        p = np.exp(scale * q[:, :, one] @ k[:, :, some].swapaxes(2, 3) - total[:, :, one, None])
        along = (dy[:, :, one] * y[:, :, one]).sum(3, keepdims=True)
        ds = scale * p * (dy[:, :, one] @ v[:, :, some].swapaxes(2, 3) - along)
        dq[:, :, one] += ds @ k[:, :, some]
        dk[:, :, some] += ds.swapaxes(2, 3) @ q[:, :, one]
        dv[:, :, some] += p.swapaxes(2, 3) @ dy[:, :, one]


def turn_with(exp):
    """Return the function that turns a query's scores into weights p, and its dy v^T into ds, both in place."""

    def turn(p, ds, count, scale, total, along):
        for j in range(count):
            p[j] = exp(scale * p[j] - total)
        for j in range(count):
            ds[j] = scale * p[j] * (ds[j] - along)
        for j in range(count, p.size):
            p[j] = ds[j] = 0.0

    return turn


turn_cpu, turn_gpu = formula(turn_with(exp)), cuda.jit(device=True)(turn_with(math.exp))


@exact
def cpu(dq, dk, dv, dy, y, total, q, k, v, seen, pairs):
    check(dq, dk, dv, dy, y, total, q, k, v, seen)
    samples, heads, time = total.shape
    d = q.shape[2] // heads
    scale = y.dtype.type(1 / math.sqrt(d))
    p = np.empty((time, k.shape[1]), y.dtype)
    ds = np.empty_like(p)
    for n in range(samples):
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            query, key = np.ascontiguousarray(q[n, :, own]), np.ascontiguousarray(k[n, :, own])
            slope, value = np.ascontiguousarray(dy[n, :, own]), np.ascontiguousarray(v[n, :, own])
            np.dot(query, key.T, p)
            np.dot(slope, value.T, ds)
            for i in range(time):
                along = y.dtype.type(0)
                for column in range(d):
                    along += slope[i, column] * y[n, i, h * d + column]
                turn_cpu(p[i], ds[i], seen[i], scale, total[n, h, i], along)
            dq[n, :, own] += from_seen(ds, key, seen)
            dk[n, :, own] += to_seen(ds, query, seen)
            dv[n, :, own] += to_seen(p, slope, seen)


@cuda.jit
def _rows(dq, p, ds, dy, y, total, q, k, v, seen, scale):
    samples, heads, time = total.shape
    d = q.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * time, cuda.gridsize(1)):
        i, h, n = at % time, at // time % heads, at // (time * heads)
        along = p.dtype.type(0)
        for column in range(h * d, (h + 1) * d):
            along += dy[n, i, column] * y[n, i, column]
        for j in range(seen[i]):
            score = slope = p.dtype.type(0)
            for column in range(h * d, (h + 1) * d):
                score += q[n, i, column] * k[n, j, column]
                slope += dy[n, i, column] * v[n, j, column]
            p[n, h, i, j], ds[n, h, i, j] = score, slope
        turn_gpu(p[n, h, i], ds[n, h, i], seen[i], p.dtype.type(scale), total[n, h, i], along)
        for column in range(h * d, (h + 1) * d):
            part = p.dtype.type(0)
            for j in range(seen[i]):
                part += ds[n, h, i, j] * k[n, j, column]
            dq[n, i, column] += part


@cuda.jit
def _columns(dk, dv, p, ds, dy, q, seen):
    samples, heads, time, keys = p.shape
    d = q.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * keys, cuda.gridsize(1)):
        j, h, n = at % keys, at // keys % heads, at // (keys * heads)
        for column in range(h * d, (h + 1) * d):
            key = value = p.dtype.type(0)
            for i in range(time):
                if j < seen[i]:
                    key += ds[n, h, i, j] * q[n, i, column]
                    value += p[n, h, i, j] * dy[n, i, column]
            dk[n, j, column] += key
            dv[n, j, column] += value


def gpu(dq, dk, dv, dy, y, total, q, k, v, seen, pairs):
    check(dq, dk, dv, dy, y, total, q, k, v, seen)
    samples, heads, time = total.shape
    p = empty((samples, heads, time, k.shape[1]), y)
    ds, scale, stream = empty(p.shape, y), 1 / math.sqrt(q.shape[2] // heads), stream_of(dy)
    _rows[grid(samples * heads * time), THREADS, stream](dq, p, ds, dy, y, total, q, k, v, seen, scale)
    _columns[grid(samples * heads * k.shape[1]), THREADS, stream](dk, dv, p, ds, dy, q, seen)
