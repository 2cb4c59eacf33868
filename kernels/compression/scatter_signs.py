"""Scatter signs: decode the words that `threshold` wrote, and add the values at their positions.

    out[i] <- out[i] + tau for a word i, out[i] <- out[i] - tau for a word ~i

Price: 1 FLOP and 3 words per word sent.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), words (k)")


def price(out, words, tau):
    return len(words), 3 * len(words)


def reference(out, words, tau):
    out[np.where(words < 0, ~words, words)] += np.where(words < 0, -tau, tau).astype(out.dtype)


@exact
def cpu(out, words, tau):
    check(out, words)
    tau = out.dtype.type(tau)
    for word in words:
        if word < 0:
            out[~word] -= tau
        else:
            out[word] += tau


@cuda.jit
def _launch(out, words, tau):
    tau = out.dtype.type(tau)
    for j in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        if words[j] < 0:
            out[~words[j]] -= tau
        else:
            out[words[j]] += tau


def gpu(out, words, tau):
    check(out, words)
    _launch[over(words)](out, words, tau)
