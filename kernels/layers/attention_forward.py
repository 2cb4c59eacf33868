"""Causal attention forward: every position attends to itself and the positions before it.

    for each sample and head:    p = softmax(q k^T / sqrt(d)) over positions that are not later          y = p v

q, k, v, y (n, time, width); p (n, heads, time, time), 0 above the diagonal, is kept for backward. A head has
d = width / heads columns of its own. A NaN affects its own position and later ones, but no earlier one. On a CPU each
head is two BLAS products; on a GPU one thread does one row.
Price: 4 n time^2 width FLOPs for the products, counted whole as in the literature, though half of p is masked, and 8
per number of p; every array once.
Source: Vaswani et al., Attention Is All You Need, NeurIPS 2017.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.layers.causal import earlier, earlier_cpu
from kernels.layers.exponential import exp
from kernels.shapes import shapes

check = shapes(
    "y (n, time, width), p (n, heads, time, time), q (n, time, width // heads * heads), "
    "k (n, time, width), v (n, time, width)"
)


def price(y, p, q, k, v):
    (n, time, width), looks = y.shape, p.shape[0] * p.shape[1] * p.shape[2] ** 2
    return 4 * n * time * time * width + 8 * looks, 4 * n * time * width + looks


def reference(y, p, q, k, v):
    samples, heads, time, _ = p.shape
    q, k, v = (x.reshape(samples, time, heads, x.shape[2] // heads).swapaxes(1, 2) for x in (q, k, v))
    scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    seen = np.tri(time, dtype=bool)
    scores = np.where(seen, scores, -np.inf)
    grown = np.exp(scores - scores.max(3, keepdims=True))
    p[:] = np.where(seen, grown / grown.sum(3, keepdims=True), 0)
    y[:] = earlier(p, v).swapaxes(1, 2).reshape(y.shape)


def look_with(exp):
    """Return the function that turns the scores of position i, (time,), into attention weights, by causal softmax."""

    def look(p, i, scale):
        largest = p[0] * scale
        for j in range(i + 1):
            p[j] *= scale
            if p[j] > largest:
                largest = p[j]
        for j in range(i + 1):
            p[j] = exp(p[j] - largest)
        total = p.dtype.type(0)
        for j in range(i + 1):
            total += p[j]
        for j in range(i + 1):
            p[j] /= total
        for j in range(i + 1, p.size):
            p[j] = 0.0

    return look


look_cpu, look_gpu = formula(look_with(exp)), cuda.jit(device=True)(look_with(math.exp))


@exact
def cpu(y, p, q, k, v):
    check(y, p, q, k, v)
    samples, heads, time, _ = p.shape
    d = q.shape[2] // heads
    scale = p.dtype.type(1 / math.sqrt(d))
    for n in range(samples):
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            query, key = np.ascontiguousarray(q[n, :, own]), np.ascontiguousarray(k[n, :, own])
            np.dot(query, key.T, p[n, h])
            for i in range(time):
                look_cpu(p[n, h, i], i, scale)
            y[n, :, own] = earlier_cpu(p[n, h], np.ascontiguousarray(v[n, :, own]))


@cuda.jit
def _launch(y, p, q, k, v, scale):
    samples, heads, time, _ = p.shape
    d = q.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * time, cuda.gridsize(1)):
        i, h, n = at % time, at // time % heads, at // (time * heads)
        for j in range(i + 1):
            total = p.dtype.type(0)
            for column in range(h * d, (h + 1) * d):
                total += q[n, i, column] * k[n, j, column]
            p[n, h, i, j] = total
        look_gpu(p[n, h, i], i, p.dtype.type(scale))
        for column in range(h * d, (h + 1) * d):
            total = p.dtype.type(0)
            for j in range(i + 1):
                total += p[n, h, i, j] * v[n, j, column]
            y[n, i, column] = total


def gpu(y, p, q, k, v):
    check(y, p, q, k, v)
    samples, heads, time, _ = p.shape
    scale = 1 / math.sqrt(q.shape[2] // heads)
    _launch[grid(samples * heads * time), THREADS, stream_of(y)](y, p, q, k, v, scale)
