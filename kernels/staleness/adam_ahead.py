"""Adam ahead: predict the parameters after n more steps like the last one.

    u = w - n lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)

m, v and t are Adam's state after its update number t; they and w are not changed. With n = 1 and constant gradients, u
is the result of Adam's next step, since a mean corrected for its start at zero is then the gradient itself.

Price: 6 FLOPs and 4 words per parameter (read w, m and v, write u).
Source: Guan et al., arXiv:2312.00839 (optimizer-dependent weight prediction).
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 6, 4


def reference(u, w, m, v, t, n, learning_rate, beta1, beta2, eps):
    u[...] = w - n * learning_rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)


@formula
def element(w, m, v, rate, fill, eps):
    return w - rate * m / (sqrt(fill * v) + eps)


@exact
def cpu(u, w, m, v, t, n, learning_rate, beta1, beta2, eps):
    real = w.dtype.type
    rate, fill = real(n * learning_rate / (1 - beta1**t)), real(1 / (1 - beta2**t))
    least = real(eps)
    for i in range(length(u, w, m, v)):
        u[i] = element(w[i], m[i], v[i], rate, fill, least)


@cuda.jit
def _launch(u, w, m, v, rate, fill, eps):
    real = w.dtype.type
    rate, fill, least = real(rate), real(fill), real(eps)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        u[i] = element(w[i], m[i], v[i], rate, fill, least)


def gpu(u, w, m, v, t, n, learning_rate, beta1, beta2, eps):
    rate, fill = n * learning_rate / (1 - beta1**t), 1 / (1 - beta2**t)
    _launch[over(u, w, m, v)](u, w, m, v, rate, fill, eps)
