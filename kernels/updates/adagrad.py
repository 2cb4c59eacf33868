"""Adagrad: divide each coordinate by the root of the sum of its squared gradients.

    s <- s + g^2        w <- w - lr g / (sqrt(s) + eps)

DistBelief's servers take eps = 0: the first step of every coordinate is then exactly lr long, and a coordinate that
never saw a gradient (0 / 0) stays where it is.

Price: 7 FLOPs and 5 words per parameter (read s, g and w, write s and w); one more vector of memory.
Source: Duchi, Hazan & Singer, Journal of Machine Learning Research 12, 2011; eps = 0 in Dean et al., NIPS 2012.
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 7, 5


def reference(w, s, g, learning_rate, eps):
    s += g * g
    width = np.sqrt(s) + eps
    w -= np.divide(learning_rate * g, width, out=np.zeros_like(w), where=width != 0)


@formula
def element(w, s, g, rate, eps):
    s = s + g * g
    width = sqrt(s) + eps
    return (w if width == 0 else w - rate * g / width), s


@exact
def cpu(w, s, g, learning_rate, eps):
    rate, least = w.dtype.type(learning_rate), w.dtype.type(eps)
    for i in range(length(w, s, g)):
        w[i], s[i] = element(w[i], s[i], g[i], rate, least)


@elementwise
def gpu(w, s, g, learning_rate, eps):
    rate, least = w.dtype.type(learning_rate), w.dtype.type(eps)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], s[i] = element(w[i], s[i], g[i], rate, least)
