"""Momentum correction (DGC): accumulate momentum locally, so that delayed coordinates arrive with their momentum.

    u <- m u + g          v <- v + u
    u <- m (u + g)        v <- v + u + g        ahead: Nesterov's

v is what has not been sent yet, u its velocity. If everything is sent and v is 0 after every step, the sum of what was
sent is the path that momentum takes.

Price: 3 FLOPs (ahead: 4) and 5 words per number (read v, u and g, write v and u).
Source: Lin, Han, Mao, Wang & Dally, ICLR 2018, section 3.2.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 3, 5


def reference(v, u, g, momentum, ahead):
    u[...] = momentum * (u + g) if ahead else momentum * u + g
    v += u + g if ahead else u


@formula
def element(v, u, g, m, ahead):
    if ahead:
        u = m * (u + g)
        return v + (u + g), u
    u = m * u + g
    return v + u, u


@exact
def cpu(v, u, g, momentum, ahead):
    m = v.dtype.type(momentum)
    for i in range(length(v, u, g)):
        v[i], u[i] = element(v[i], u[i], g[i], m, ahead)


@elementwise
def gpu(v, u, g, momentum, ahead):
    m = v.dtype.type(momentum)
    for i in range(cuda.grid(1), v.size, cuda.gridsize(1)):
        v[i], u[i] = element(v[i], u[i], g[i], m, ahead)
