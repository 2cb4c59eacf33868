"""Distance scaling: shrink a worker's step by how far the centre has moved since the worker read it.

    w <- w - lr g / ((w - w')^2 / lr + 1)        weight by weight

A weight that has not moved takes the whole step; the factor is never above 1.

Price: 7 FLOPs and 4 words per parameter (read g, w' and w, write w).
Source: Hermans, On Scalable Deep Learning and Parallelizing Gradient Descent, Maastricht University 2017, chapter 4.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 7, 4


def reference(w, g, pulled, learning_rate):
    w -= learning_rate * g / ((w - pulled) * (w - pulled) / w.dtype.type(learning_rate) + 1)


@formula
def element(w, g, pulled, rate, one):
    moved = w - pulled
    return w - rate * g / (moved * moved / rate + one)


@exact
def cpu(w, g, pulled, learning_rate):
    rate, one = w.dtype.type(learning_rate), w.dtype.type(1)
    for i in range(length(w, g, pulled)):
        w[i] = element(w[i], g[i], pulled[i], rate, one)


@elementwise
def gpu(w, g, pulled, learning_rate):
    rate, one = w.dtype.type(learning_rate), w.dtype.type(1)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i] = element(w[i], g[i], pulled[i], rate, one)
