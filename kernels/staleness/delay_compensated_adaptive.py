"""Adaptive delay compensation: divide the correction by the gradients' root mean square.

    s <- m s + (1 - m) g^2        w <- w - lr (g + lam / sqrt(s + eps) g g (w - w'))

eps stands inside the root, and s includes the newest gradient before it is used, as in the authors' code.

Price: 14 FLOPs and 6 words per parameter (read s, g, w' and w, write s and w).
Source: Zheng et al., ICML 2017 (DC-ASGD-a); Microsoft's updater for Multiverso.
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 14, 6


def reference(w, s, g, backup, learning_rate, lam, forget, eps):
    s[...] = forget * s + (1 - forget) * (g * g)
    w -= learning_rate * (g + lam / np.sqrt(s + eps) * (g * g) * (w - backup))


@formula
def element(w, s, g, backup, rate, lam, a, b, eps):
    s = a * s + b * (g * g)
    return w - rate * (g + lam / sqrt(s + eps) * (g * g) * (w - backup)), s


@exact
def cpu(w, s, g, backup, learning_rate, lam, forget, eps):
    real = w.dtype.type
    rate, weight, a, b, least = real(learning_rate), real(lam), real(forget), real(1 - forget), real(eps)
    for i in range(length(w, s, g, backup)):
        w[i], s[i] = element(w[i], s[i], g[i], backup[i], rate, weight, a, b, least)


@cuda.jit
def _launch(w, s, g, backup, learning_rate, lam, a, b, eps):
    real = w.dtype.type
    rate, weight, a, b, least = real(learning_rate), real(lam), real(a), real(b), real(eps)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], s[i] = element(w[i], s[i], g[i], backup[i], rate, weight, a, b, least)


def gpu(w, s, g, backup, learning_rate, lam, forget, eps):
    _launch[over(w, s, g, backup)](w, s, g, backup, learning_rate, lam, forget, 1 - forget, eps)
