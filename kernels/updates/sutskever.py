"""Sutskever's form of Nesterov's momentum: parameters, and the point ahead of them where gradients are taken.

    u <- mu u - lr g        x <- x + u        y <- x + mu u

g is the gradient at the old y; the next one is taken at the new y. The algorithm begins with u = 0 and y = x.
`nesterov` is the same algorithm with y called w; it need not keep x.

Price: 6 FLOPs and 6 words per parameter (read x, u and g, write y, x and u); two more vectors of memory.
Source: Sutskever, Martens, Dahl & Hinton, ICML 2013, equations 3 and 4.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 6, 6


def reference(y, x, u, g, learning_rate, momentum):
    u[...] = momentum * u - learning_rate * g
    x += u
    y[...] = x + momentum * u


@formula
def element(x, u, g, rate, mu):
    u = mu * u - rate * g
    x = x + u
    return x + mu * u, x, u


@exact
def cpu(y, x, u, g, learning_rate, momentum):
    rate, mu = y.dtype.type(learning_rate), y.dtype.type(momentum)
    for i in range(length(y, x, u, g)):
        y[i], x[i], u[i] = element(x[i], u[i], g[i], rate, mu)


@elementwise
def gpu(y, x, u, g, learning_rate, momentum):
    rate, mu = y.dtype.type(learning_rate), y.dtype.type(momentum)
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i], x[i], u[i] = element(x[i], u[i], g[i], rate, mu)
