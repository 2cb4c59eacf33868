"""Matrix product, for low-rank factors.

    c <- a b        a (m, k), b (k, n), either of them perhaps transposed; c (m, n)

Price: 2 m k n FLOPs, and every array once. BLAS on a CPU, the tiled kernel of `layers/tiles.py` on a GPU.
"""

import numpy as np

from kernels.compiled import exact
from kernels.layers.tiles import product
from kernels.shapes import shapes

check = shapes("c (m, n), a (m, k), b (k, n)")


def price(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    return 2 * m * k * n, m * k + k * n + m * n


def reference(c, a, b):
    c[:] = a @ b


@exact
def cpu(c, a, b):
    check(c, a, b)
    np.dot(a, b, c)


def gpu(c, a, b):
    check(c, a, b)
    product(c, a, b)
