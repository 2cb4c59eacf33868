"""Delay compensation (DC-ASGD): correct a gradient taken at w' for w, with g g in place of the Hessian.

    w <- w - lr (g + lam g g (w - w'))

These are the first terms of the gradient's Taylor series around w'; the diagonal of g g' estimates the curvature.

Price: 7 FLOPs and 4 words per parameter (read g, w' and w, write w).
Source: Zheng et al., ICML 2017, equation 10 (DC-ASGD-c); Microsoft's updater for Multiverso.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 7, 4


def reference(w, g, backup, learning_rate, lam):
    w -= learning_rate * (g + lam * (g * g) * (w - backup))


@formula
def element(w, g, backup, rate, lam):
    return w - rate * (g + lam * (g * g) * (w - backup))


@exact
def cpu(w, g, backup, learning_rate, lam):
    rate, weight = w.dtype.type(learning_rate), w.dtype.type(lam)
    for i in range(length(w, g, backup)):
        w[i] = element(w[i], g[i], backup[i], rate, weight)


@elementwise
def gpu(w, g, backup, learning_rate, lam):
    rate, weight = w.dtype.type(learning_rate), w.dtype.type(lam)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i] = element(w[i], g[i], backup[i], rate, weight)
