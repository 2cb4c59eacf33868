"""SGD: one step against the gradient.

    w <- w - lr g

Price: 2 FLOPs and 3 words per parameter (read w and g, write w): bound by memory everywhere. On a GPU, below about
10^5 parameters the launch costs more than the work.
Source: Robbins & Monro, Annals of Mathematical Statistics 22(3), 1951.
"""

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import elementwise

FLOPS, WORDS = 2, 3


def reference(w, g, learning_rate):
    w -= learning_rate * g


@formula
def element(w, g, rate):
    return w - rate * g


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
