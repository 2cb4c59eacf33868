"""RMSprop blended with momentum: a step is `sgd` times momentum's plus `rms` times RMSprop's.

    m <- a m + (1 - a) g^2        D <- mu D - (sgd + rms / (sqrt(m) + eps)) g        w <- w + lr D

sgd = 1 and rms = 0 is momentum, bit for bit; sgd = 0 is RMSprop with momentum and the rate lr rms.

Price: 13 FLOPs and 7 words per parameter (read w, D, m and g, write w, D and m); two more vectors of memory.
Source: Akiba, Suzuki & Fukuda, arXiv:1711.04325, 2017.
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 13, 7


def reference(w, D, m, g, learning_rate, momentum, forget, sgd, rms, eps):
    m[...] = forget * m + (1 - forget) * (g * g)
    D[...] = momentum * D - (sgd + rms / (np.sqrt(m) + eps)) * g
    w += learning_rate * D


@formula
def element(w, D, m, g, rate, mu, a, b, sgd, rms, eps):
    m = a * m + b * (g * g)
    D = mu * D - (sgd + rms / (sqrt(m) + eps)) * g
    return w + rate * D, D, m


@exact
def cpu(w, D, m, g, learning_rate, momentum, forget, sgd, rms, eps):
    real = w.dtype.type
    rate, mu, a, b = real(learning_rate), real(momentum), real(forget), real(1 - forget)
    one, other, least = real(sgd), real(rms), real(eps)
    for i in range(length(w, D, m, g)):
        w[i], D[i], m[i] = element(w[i], D[i], m[i], g[i], rate, mu, a, b, one, other, least)


@cuda.jit
def _launch(w, D, m, g, learning_rate, momentum, a, b, sgd, rms, eps):
    real = w.dtype.type
    rate, mu, a, b = real(learning_rate), real(momentum), real(a), real(b)
    one, other, least = real(sgd), real(rms), real(eps)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], D[i], m[i] = element(w[i], D[i], m[i], g[i], rate, mu, a, b, one, other, least)


def gpu(w, D, m, g, learning_rate, momentum, forget, sgd, rms, eps):
    _launch[over(w, D, m, g)](w, D, m, g, learning_rate, momentum, forget, 1 - forget, sgd, rms, eps)
