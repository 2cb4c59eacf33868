"""Nesterov's momentum: the gradient is taken at the point the velocity leads to.

    v <- mu v + g        w <- w - lr (g + mu v)

This is PyTorch's form, whose w is the point ahead: gradients are taken at w itself. Sutskever's form keeps the point
behind it: g is taken at x + mu u, then u <- mu u - lr g and x <- x + u. With w = x + mu u and u = -lr v the two are one
algorithm seen at two points; `sutskever` is the kernel in Sutskever's notation.

Price: 6 FLOPs and 5 words per parameter (read v, g and w, write v and w); one more vector of memory.
Source: Nesterov, Soviet Mathematics Doklady 27(2), 1983; Sutskever, Martens, Dahl & Hinton, ICML 2013.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 6, 5


def reference(w, v, g, learning_rate, momentum):
    v[...] = momentum * v + g
    w -= learning_rate * (g + momentum * v)


@formula
def element(w, v, g, rate, mu):
    v = mu * v + g
    return w - rate * (g + mu * v), v


@exact
def cpu(w, v, g, learning_rate, momentum):
    rate, mu = w.dtype.type(learning_rate), w.dtype.type(momentum)
    for i in range(length(w, v, g)):
        w[i], v[i] = element(w[i], v[i], g[i], rate, mu)


@elementwise
def gpu(w, v, g, learning_rate, momentum):
    rate, mu = w.dtype.type(learning_rate), w.dtype.type(momentum)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], v[i] = element(w[i], v[i], g[i], rate, mu)
