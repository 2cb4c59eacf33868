"""ReLU backward: the gradient passes where the output was positive.

    dz = dy  where y > 0,  else 0

The output y of the forward pass is enough; the input need not be kept. At exactly 0 the derivative is taken as 0.
Price: 1 FLOP and 3 words per number: bound by memory everywhere.
"""

import numpy as np

from kernels.compiled import exact, flat, formula, length
from kernels.gpu import cuda
from kernels.launch import flatten, over

FLOPS, WORDS = 1, 3


@formula
def element(dy, y):
    return dy if y > 0 else 0.0


def reference(dz, dy, y):
    dz[:] = np.where(y > 0, dy, 0)


@exact
def cpu(dz, dy, y):
    dz, dy, y = flat(dz), flat(dy), flat(y)
    for i in range(length(dz, dy, y)):
        dz[i] = element(dy[i], y[i])


@cuda.jit
def _launch(dz, dy, y):
    for i in range(cuda.grid(1), dz.size, cuda.gridsize(1)):
        dz[i] = element(dy[i], y[i])


def gpu(dz, dy, y):
    dz, dy, y = flatten(dz, dy, y)
    _launch[over(dz, dy, y)](dz, dy, y)
