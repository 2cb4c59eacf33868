"""Causal attention backward: the gradients of queries, keys and values.

    for each sample and head:    dv = p^T dy          ds = p (dy v^T - sum over each row of p dy v^T)
                                 dq = ds k / sqrt(d)          dk = ds^T q / sqrt(d)

Shapes are those of attention_forward; p is that of the forward pass. As there, a NaN has no effect on a position that
does not see it. All of it is B of a split backward pass: attention has no weights, and the layer before waits for all
three.
Price: 8 n time^2 width FLOPs for the products, counted whole though half of p is 0, and 5 per number of p; every array
once.
"""

import math

import numpy as np

from kernels.arrays import empty_like
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.layers.causal import earlier, earlier_cpu, later, later_cpu
from kernels.shapes import shapes

check = shapes(
    "dq (n, time, width), dk (n, time, width), dv (n, time, width), dy (n, time, width), "
    "p (n, heads, time, time), q (n, time, width // heads * heads), k (n, time, width), "
    "v (n, time, width)"
)


def price(dq, dk, dv, dy, p, q, k, v):
    (n, time, width), looks = dy.shape, p.shape[0] * p.shape[1] * p.shape[2] ** 2
    return 8 * n * time * time * width + 5 * looks, 7 * n * time * width + looks


def reference(dq, dk, dv, dy, p, q, k, v):
    samples, heads, time, _ = p.shape
    dy, q, k, v = (x.reshape(samples, time, heads, x.shape[2] // heads).swapaxes(1, 2) for x in (dy, q, k, v))
    dp = np.where(np.tri(time, dtype=bool), dy @ v.swapaxes(2, 3), 0)
    ds = p * (dp - (p * dp).sum(3, keepdims=True)) / math.sqrt(q.shape[3])
    for out, part in (dq, earlier(ds, k)), (dk, later(ds, q)), (dv, later(p, dy)):
        out[:] = part.swapaxes(1, 2).reshape(out.shape)


def turn(ds, p, i, scale):
    """Turn dy v^T of position i, (time,), into its ds, in place; the entries of later positions become 0."""
    along = ds.dtype.type(0)
    for j in range(i + 1):
        along += p[j] * ds[j]
    for j in range(i + 1):
        ds[j] = scale * p[j] * (ds[j] - along)
    for j in range(i + 1, ds.size):
        ds[j] = 0.0


turn_cpu, turn_gpu = formula(turn), cuda.jit(device=True)(turn)


@exact
def cpu(dq, dk, dv, dy, p, q, k, v):
    check(dq, dk, dv, dy, p, q, k, v)
    samples, heads, time, _ = p.shape
    d = q.shape[2] // heads
    scale = p.dtype.type(1 / math.sqrt(d))
    ds = np.empty((time, time), p.dtype)
    for n in range(samples):
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            slope, value = np.ascontiguousarray(dy[n, :, own]), np.ascontiguousarray(v[n, :, own])
            np.dot(slope, value.T, ds)
            for i in range(time):
                turn_cpu(ds[i], p[n, h, i], i, scale)
            dq[n, :, own] = earlier_cpu(ds, np.ascontiguousarray(k[n, :, own]))
            dk[n, :, own] = later_cpu(ds, np.ascontiguousarray(q[n, :, own]))
            dv[n, :, own] = later_cpu(p[n, h], slope)


@cuda.jit
def _rows(dq, ds, dy, p, k, v, scale):
    samples, heads, time, _ = p.shape
    d = k.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * time, cuda.gridsize(1)):
        i, h, n = at % time, at // time % heads, at // (time * heads)
        for j in range(i + 1):
            total = p.dtype.type(0)
            for column in range(h * d, (h + 1) * d):
                total += dy[n, i, column] * v[n, j, column]
            ds[n, h, i, j] = total
        turn_gpu(ds[n, h, i], p[n, h, i], i, p.dtype.type(scale))
        for column in range(h * d, (h + 1) * d):
            total = p.dtype.type(0)
            for j in range(i + 1):
                total += ds[n, h, i, j] * k[n, j, column]
            dq[n, i, column] = total


@cuda.jit
def _columns(dk, dv, ds, dy, p, q):
    samples, heads, time, _ = p.shape
    d = q.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * time, cuda.gridsize(1)):
        j, h, n = at % time, at // time % heads, at // (time * heads)
        for column in range(h * d, (h + 1) * d):
            key = value = p.dtype.type(0)
            for i in range(j, time):
                key += ds[n, h, i, j] * q[n, i, column]
                value += p[n, h, i, j] * dy[n, i, column]
            dk[n, j, column], dv[n, j, column] = key, value


def gpu(dq, dk, dv, dy, p, q, k, v):
    check(dq, dk, dv, dy, p, q, k, v)
    samples, heads, time, _ = p.shape
    ds, launch = empty_like(p), (grid(samples * heads * time), THREADS, stream_of(dy))
    _rows[launch](dq, ds, dy, p, k, v, 1 / math.sqrt(q.shape[2] // heads))
    _columns[launch](dk, dv, ds, dy, p, q)
