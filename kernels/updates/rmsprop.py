"""RMSprop: divide each coordinate by the root mean square of its recent gradients.

    s <- a s + (1 - a) g^2        w <- w - lr g / (sqrt(s) + eps)

eps stands outside the root, as in PyTorch; TensorFlow has it inside, sqrt(s + eps), which matters where it is not tiny
(Inception was trained with 1). The argument `inside` is TensorFlow's eps; each form sets the other's eps to zero.

Price: 9 FLOPs and 5 words per parameter (read s, g and w, write s and w); one more vector of memory.
Source: Tieleman & Hinton, Coursera: Neural Networks for Machine Learning, lecture 6.5, 2012.
"""

from math import sqrt

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 9, 5


def reference(w, s, g, learning_rate, forget, eps, inside=0.0):
    s[...] = forget * s + (1 - forget) * (g * g)
    w -= learning_rate * g / (np.sqrt(s + inside) + eps)


@formula
def element(w, s, g, rate, a, b, eps, inside):
    s = a * s + b * (g * g)
    return w - rate * g / (sqrt(s + inside) + eps), s


@exact
def cpu(w, s, g, learning_rate, forget, eps, inside=0.0):
    real = w.dtype.type
    rate, a, b = real(learning_rate), real(forget), real(1 - forget)
    outer, inner = real(eps), real(inside)
    for i in range(length(w, s, g)):
        w[i], s[i] = element(w[i], s[i], g[i], rate, a, b, outer, inner)


@cuda.jit
def _launch(w, s, g, learning_rate, a, b, eps, inside):
    real = w.dtype.type
    rate, a, b = real(learning_rate), real(a), real(b)
    outer, inner = real(eps), real(inside)
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        w[i], s[i] = element(w[i], s[i], g[i], rate, a, b, outer, inner)


def gpu(w, s, g, learning_rate, forget, eps, inside=0.0):
    _launch[over(w, s, g)](w, s, g, learning_rate, forget, 1 - forget, eps, inside)
