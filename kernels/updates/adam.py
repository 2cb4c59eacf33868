"""Adam: momentum divided by the root mean square of recent gradients.

    m <- b1 m + (1 - b1) g        v <- b2 v + (1 - b2) g^2
    w <- w - lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

t counts updates from 1; the divisions by 1 - b^t make up for m and v starting at zero. `cpu` and `gpu` compute these
two factors outside the loop, so they agree with the reference to within rounding, but not bit for bit.

Price: 13 FLOPs and 7 words per parameter (read m, v, g and w, write m, v and w); two more vectors of memory.
Source: Kingma & Ba, ICLR 2015, Algorithm 1.
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 13, 7


def reference(w, m, v, g, t, learning_rate, beta1, beta2, eps):
    m[...] = beta1 * m + (1 - beta1) * g
    v[...] = beta2 * v + (1 - beta2) * g**2
    w -= learning_rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


@formula
def element(w, m, v, g, b1, a1, rate, b2, a2, fill, eps):
    m = b1 * m + a1 * g
    v = b2 * v + a2 * (g * g)
    return w - rate * m / (sqrt(fill * v) + eps), m, v


@exact
def cpu(w, m, v, g, t, learning_rate, beta1, beta2, eps):
    real = w.dtype.type
    b1, a1, rate = real(beta1), real(1 - beta1), real(learning_rate / (1 - beta1**t))
    b2, a2, fill = real(beta2), real(1 - beta2), real(1 / (1 - beta2**t))
    least = real(eps)
    for i in range(length(w, m, v, g)):
        w[i], m[i], v[i] = element(w[i], m[i], v[i], g[i], b1, a1, rate, b2, a2, fill, least)


@cuda.jit
def _launch(w, m, v, g, b1, a1, rate, b2, a2, fill, eps):
    real = w.dtype.type
    b1, a1, rate = real(b1), real(a1), real(rate)
    b2, a2, fill = real(b2), real(a2), real(fill)
    least = real(eps)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], m[i], v[i] = element(w[i], m[i], v[i], g[i], b1, a1, rate, b2, a2, fill, least)


def gpu(w, m, v, g, t, learning_rate, beta1, beta2, eps):
    rate, fill = learning_rate / (1 - beta1**t), 1 / (1 - beta2**t)
    _launch[over(w, m, v, g)](w, m, v, g, beta1, 1 - beta1, rate, beta2, 1 - beta2, fill, eps)
