"""Attention to one block of keys, combined with the attention to earlier blocks by the online softmax.

    for each sample, head and query i:    s = q[i] k[j]^T / sqrt(d) over the keys j < seen[i]
                                          total <- log(exp(total) + sum over j of exp(s[j]))
                                          y[i] <- exp(total before - total) y[i] + sum over j of exp(s[j] - total) v[j]

After any number of blocks, in any order, y is the attention to all their keys. Start with total = -infinity, so that
the first block overwrites y, and pass every key exactly once. q, y (n, time, width); k, v (n, keys, width); total
(n, heads, time); seen (time,), whole numbers from 0 to keys. `pairs` counts pairs of a query and a key that it sees;
a query's own position counts half, as on the diagonal of a causal square. As in attention_forward, a NaN reaches only
the queries that see it.
Price: 8 n width FLOPs for each of the `pairs` and 16 n heads for its exponential, so the blocks of a causal square add
up to the price of attention_forward; every array once, y and total twice.
Source: Milakov & Gimelshein, arXiv:1805.02867 (online softmax); Liu, Zaharia & Abbeel, arXiv:2310.01889.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.layers.causal import from_seen
from kernels.layers.exponential import exp
from kernels.shapes import shapes

check = shapes(
    "y (n, time, width), total (n, heads, time), q (n, time, width // heads * heads), "
    "k (n, keys, width), v (n, keys, width), seen (time)"
)


def price(y, total, q, k, v, seen, pairs):
    (n, time, width), heads = y.shape, total.shape[1]
    return pairs * n * (8 * width + 16 * heads), 3 * n * time * width + 2 * n * k.shape[1] * width


def reference(y, total, q, k, v, seen, pairs):
    n, heads, _ = total.shape
    q, k, v, whole = (
        x.reshape(n, x.shape[1], heads, x.shape[2] // heads).swapaxes(1, 2) for x in (q, k, v, y)
    )  # whole: a view of y
    scores = q @ k.swapaxes(2, 3) / math.sqrt(q.shape[3])
    for i, count in enumerate(seen):
        if not count:
            continue
        own = scores[:, :, i, :count]
        before = total[:, :, i].copy()
        largest = np.maximum(before, own.max(2))
        total[:, :, i] = largest + np.log(np.exp(before - largest) + np.exp(own - largest[..., None]).sum(2))
        after = total[:, :, i, None]
        fresh = np.exp(own - after)[:, :, None] @ v[:, :, :count]
        old = np.where(before[..., None] == -np.inf, 0, np.exp(before[..., None] - after) * whole[:, :, i])
        whole[:, :, i] = old + fresh[:, :, 0]


def weigh_with(exp):
    """Return the function that turns a query's scores into weights, in place, given its total over earlier blocks.

    The function returns the new total, and the factor for the result of the earlier blocks.
    """

    def weigh(p, count, scale, total):
        largest = total
        for j in range(count):
            p[j] *= scale
            if p[j] > largest:
                largest = p[j]
        for j in range(count):
            p[j] = exp(p[j] - largest)
        before = math.exp(total - largest)
        grown = before
        for j in range(count):
            grown += p[j]
        for j in range(count):
            p[j] /= grown
        for j in range(count, p.size):
            p[j] = 0.0
        return largest + math.log(grown), before / grown

    return weigh


weigh_cpu, weigh_gpu = formula(weigh_with(exp)), cuda.jit(device=True)(weigh_with(math.exp))


@exact
def cpu(y, total, q, k, v, seen, pairs):
    check(y, total, q, k, v, seen)
    samples, heads, time = total.shape
    d = q.shape[2] // heads
    scale = y.dtype.type(1 / math.sqrt(d))
    p = np.empty((time, k.shape[1]), y.dtype)
    for n in range(samples):
        for h in range(heads):
            own = slice(h * d, (h + 1) * d)
            query, key = np.ascontiguousarray(q[n, :, own]), np.ascontiguousarray(k[n, :, own])
            np.dot(query, key.T, p)
            for i in range(time):
                if seen[i]:
                    total[n, h, i], before = weigh_cpu(p[i], seen[i], scale, total[n, h, i])
                    for column in range(h * d, (h + 1) * d):
                        y[n, i, column] = before * y[n, i, column] if before else 0.0
                else:
                    p[i] = 0.0
            y[n, :, own] += from_seen(p, np.ascontiguousarray(v[n, :, own]), seen)


@cuda.jit
def _launch(y, total, p, q, k, v, seen, scale):
    samples, heads, time = total.shape
    d = q.shape[2] // heads
    for at in range(cuda.grid(1), samples * heads * time, cuda.gridsize(1)):
        i, h, n = at % time, at // time % heads, at // (time * heads)
        if seen[i]:
            for j in range(seen[i]):
                score = p.dtype.type(0)
                for column in range(h * d, (h + 1) * d):
                    score += q[n, i, column] * k[n, j, column]
                p[n, h, i, j] = score
            total[n, h, i], before = weigh_gpu(p[n, h, i], seen[i], p.dtype.type(scale), total[n, h, i])
            for column in range(h * d, (h + 1) * d):
                value = before * y[n, i, column] if before else p.dtype.type(0)
                for j in range(seen[i]):
                    value += p[n, h, i, j] * v[n, j, column]
                y[n, i, column] = value


def gpu(y, total, q, k, v, seen, pairs):
    check(y, total, q, k, v, seen)
    samples, heads, time = total.shape
    p, scale = empty((samples, heads, time, k.shape[1]), y), 1 / math.sqrt(q.shape[2] // heads)
    _launch[grid(samples * heads * time), THREADS, stream_of(y)](y, total, p, q, k, v, seen, scale)
