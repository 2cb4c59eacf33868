"""Routing backward: the gradient of the logits, given the gradients of the weights, and the balance loss.

    t = sum over the chosen experts of weight dweight
    dz[j] = (weight (dweight - t) if j is chosen, else 0)          k > 1: as of a softmax over the chosen experts
    dz[j] = (weight dweight if j is chosen, else 0) - t p[j]       k = 1
    dz[j] <- dz[j] + balance experts / n p[j] (share[j] - sum over e of share[e] p[e])

The last line is the gradient of balance experts sum over e of share[e] P[e], where P[e] is the mean of p[e] over the n
tokens, and share[e], which counts as a constant, the fraction of tokens whose first choice is e. dz and p (n, experts),
weight, dweight and chosen (n, k), share (experts,); the experts that a token chose are distinct.
Price: about 6 FLOPs per logit and 4 per weight; every array once.
Source: Fedus, Zoph & Shazeer, Switch Transformers, arXiv:2101.03961 (balance loss).
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.shapes import shapes

check = shapes("dz (n, experts), dweight (n, k), p (n, experts), weight (n, k), chosen (n, k), share (experts)")


def price(dz, dweight, p, weight, chosen, share, balance):
    (n, experts), k = dz.shape, chosen.shape[1]
    return 6 * n * experts + 4 * n * k, 2 * n * experts + 3 * n * k + experts


def reference(dz, dweight, p, weight, chosen, share, balance):
    n, experts = dz.shape
    dz[:] = balance * experts / max(1, n) * p * (share - (p * share).sum(1, keepdims=True))
    total = (weight * dweight).sum(1, keepdims=True)
    if chosen.shape[1] == 1:
        dz -= total * p
        total = 0
    np.put_along_axis(dz, chosen, np.take_along_axis(dz, chosen, 1) + weight * (dweight - total), 1)


def row(dz, dweight, p, weight, chosen, share, pull):
    """Write dz, (experts,), of one token; `pull` = balance * experts / n."""
    mean = total = p.dtype.type(0)
    for j in range(p.size):
        mean += share[j] * p[j]
    for place in range(chosen.size):
        total += weight[place] * dweight[place]
    for j in range(p.size):
        dz[j] = pull * p[j] * (share[j] - mean)
    if chosen.size == 1:
        for j in range(p.size):
            dz[j] -= total * p[j]
        total = p.dtype.type(0)
    for place in range(chosen.size):
        dz[chosen[place]] += weight[place] * (dweight[place] - total)


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(dz, dweight, p, weight, chosen, share, balance):
    check(dz, dweight, p, weight, chosen, share)
    pull = dz.dtype.type(balance * dz.shape[1] / max(1, dz.shape[0]))
    for i in range(dz.shape[0]):
        row_cpu(dz[i], dweight[i], p[i], weight[i], chosen[i], share, pull)


@cuda.jit
def _launch(dz, dweight, p, weight, chosen, share, pull):
    for i in range(cuda.grid(1), dz.shape[0], cuda.gridsize(1)):
        row_gpu(dz[i], dweight[i], p[i], weight[i], chosen[i], share, dz.dtype.type(pull))


def gpu(dz, dweight, p, weight, chosen, share, balance):
    check(dz, dweight, p, weight, chosen, share)
    n, experts = dz.shape
    _launch[grid(n), THREADS, stream_of(dz)](dz, dweight, p, weight, chosen, share, balance * experts / max(1, n))
