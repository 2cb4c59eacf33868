"""Momentum (heavy ball): step along an exponentially decaying sum of gradients.

    v <- mu v + g        w <- w - lr v

The learning rate stands outside v, as in PyTorch. Caffe's form, v <- mu v - lr g and w <- w + v, is the same as long
as lr stays constant; when lr changes by a factor, that form needs its v multiplied by the factor too.

Price: 4 FLOPs and 5 words per parameter (read v, g and w, write v and w); one more vector of memory.
Source: Polyak, USSR Computational Mathematics and Mathematical Physics 4(5), 1964.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 4, 5


def reference(w, v, g, learning_rate, momentum):
    v[...] = momentum * v + g
    w -= learning_rate * v


@formula
def element(w, v, g, rate, mu):
    v = mu * v + g
    return w - rate * v, v


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
