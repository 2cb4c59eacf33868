"""Dot product of two vectors.

    x . y = x_1 y_1 + x_2 y_2 + ...          returns a float

On a CPU the sum is float64, and the compiler may choose its order; on a GPU neighbouring threads take neighbouring
numbers, which gives a few thousand partial sums, added at the end.

Price: 2 FLOPs per number, and both are read once.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import length, on_disk
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 2, 2
SUMS = 4096  # on a GPU, at most


def reference(x, y):
    return float(np.dot(x.astype(np.float64), y.astype(np.float64)))


@on_disk(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def cpu(x, y):
    total = 0.0
    for i in range(length(x, y)):
        total += float(x[i]) * float(y[i])
    return total


@cuda.jit
def _launch(sums, x, y):
    for part in range(cuda.grid(1), sums.size, cuda.gridsize(1)):
        total = x.dtype.type(0)
        for i in range(part, x.size, sums.size):
            total += x[i] * y[i]
        sums[part] = total


def gpu(x, y):
    over(x, y)
    sums = empty(min(len(x), SUMS), x)
    _launch[over(sums)](sums, x, y)
    return float(sums.sum())
