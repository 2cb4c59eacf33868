"""Routing forward: the probability of each expert, and the k most probable experts of each token.

    p = softmax(z)          z are a token's logits
    chosen = the k experts with the largest logits, the largest first; of equal ones the lower number first
    weight = p of the chosen experts, divided by their sum if k > 1

z and p (n, experts), weight and chosen (n, k), the latter of whole numbers. With k = 1 the weight stays p, since a
quotient of 1 would give the router no gradient. A NaN is chosen after every number.
Price: about 8 + k FLOPs per logit; z, p, weight and chosen once.
Source: Shazeer et al., arXiv:1701.06538; Fedus, Zoph & Shazeer, Switch Transformers, arXiv:2101.03961 (k = 1).
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.layers.exponential import exp
from kernels.shapes import shapes

check = shapes("p (n, experts), weight (n, k), chosen (n, k), z (n, experts)")
TOO_MANY = "chosen has more columns than z: a token cannot choose more experts than there are; give it fewer columns."


def price(p, weight, chosen, z):
    (n, experts), k = z.shape, chosen.shape[1]
    return (8 + k) * n * experts, 2 * n * experts + 2 * n * k


def reference(p, weight, chosen, z):
    k = chosen.shape[1]
    grown = np.exp(z - z.max(1, keepdims=True))
    p[:] = grown / grown.sum(1, keepdims=True)
    chosen[:] = np.argsort(-z, axis=1, kind="stable")[:, :k]
    own = np.take_along_axis(p, chosen, 1)
    weight[:] = own / own.sum(1, keepdims=True) if k > 1 else own


def row_with(exp):
    """Return the function that routes one token. Its p and z have shape (experts,), its weight and chosen (k,)."""

    def row(p, weight, chosen, z):
        largest = z[0]
        for j in range(1, z.size):
            if z[j] > largest or z[j] != z[j]:
                largest = z[j]
        total = z.dtype.type(0)
        for j in range(z.size):
            p[j] = exp(z[j] - largest)
            total += p[j]
        for j in range(z.size):
            p[j] /= total
        own = z.dtype.type(0)
        for place in range(chosen.size):
            best = -1
            for j in range(z.size):
                free = True
                for before in range(place):
                    free = free and chosen[before] != j
                if free and (best < 0 or z[j] > z[best] or (z[best] != z[best] and z[j] == z[j])):
                    best = j
            chosen[place] = best
            weight[place] = p[best]
            own += p[best]
        if chosen.size > 1:
            for place in range(chosen.size):
                weight[place] /= own

    return row


row_cpu, row_gpu = formula(row_with(exp)), cuda.jit(device=True)(row_with(math.exp))


@exact
def cpu(p, weight, chosen, z):
    check(p, weight, chosen, z)
    if chosen.shape[1] > z.shape[1]:
        raise ValueError(TOO_MANY)
    for i in range(z.shape[0]):
        row_cpu(p[i], weight[i], chosen[i], z[i])


@cuda.jit
def _launch(p, weight, chosen, z):
    for i in range(cuda.grid(1), z.shape[0], cuda.gridsize(1)):
        row_gpu(p[i], weight[i], chosen[i], z[i])


def gpu(p, weight, chosen, z):
    check(p, weight, chosen, z)
    if chosen.shape[1] > z.shape[1]:
        raise ValueError(TOO_MANY)
    _launch[grid(len(z)), THREADS, stream_of(z)](p, weight, chosen, z)
