"""Sign descent: every parameter takes a step of the same length, against the sign of its gradient.

    w <- w - lr sign(g)

A gradient of 0 leaves its parameter where it is; one that is not finite makes it NaN, so that an overflow does not pass
for a step.

Price: 2 FLOPs and 3 words per parameter (read w and g, write w), as for SGD.
Source: Bernstein, Wang, Azizzadenesheli & Anandkumar, ICML 2018, arXiv:1802.04434.
"""

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 2, 3


def reference(w, g, learning_rate):
    w -= learning_rate * (np.sign(g) + (g - g))


@formula
def element(w, g, rate):
    zero = g - g  # NaN if g is not finite
    if g > 0:
        return w - (rate + zero)
    if g < 0:
        return w + (rate + zero)
    return w - zero


@exact
def cpu(w, g, learning_rate):
    rate = w.dtype.type(learning_rate)
    for i in range(length(w, g)):
        w[i] = element(w[i], g[i], rate)


@elementwise
def gpu(w, g, learning_rate):
    rate = w.dtype.type(learning_rate)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i] = element(w[i], g[i], rate)
