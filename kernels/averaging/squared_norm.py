"""Squared norm of a vector.

    |x|^2 = x_1^2 + x_2^2 + ...          x of any shape; returns a float

On a CPU the sum is float64, and the compiler may choose its order; on a GPU neighbouring threads take neighbouring
numbers, which gives a few thousand partial sums, added at the end.

Price: 2 FLOPs per number, and it is read once.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import on_disk
from kernels.gpu import cuda
from kernels.launch import over

FLOPS, WORDS = 2, 1
SUMS = 4096  # on a GPU, at most


def reference(x):
    return float(np.square(x, dtype=np.float64).sum())


@on_disk(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def cpu(x):
    total = 0.0
    for value in x.flat:
        total += float(value) * float(value)
    return total


@cuda.jit
def _launch(sums, x):
    for part in range(cuda.grid(1), sums.size, cuda.gridsize(1)):
        total = x.dtype.type(0)
        for i in range(part, x.size, sums.size):
            total += x[i] * x[i]
        sums[part] = total


def gpu(x):
    x = x.reshape(-1)
    sums = empty(min(len(x), SUMS), x)
    _launch[over(sums)](sums, x)
    return float(sums.sum())
