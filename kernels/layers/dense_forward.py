"""Dense forward: a fully connected layer, with bias and ReLU in the same pass.

    y = x w + b,  or  max(0, x w + b) with relu          x (n, i), w (i, o), b (o,), y (n, o)

Price: 2 n i o FLOPs for the product, and every array once. The product is BLAS on a CPU and the tiled
kernel of `tiles.py` on a GPU. A NaN passes through the ReLU.
"""

import numpy as np

from kernels.compiled import exact
from kernels.layers.tiles import product
from kernels.shapes import shapes

check = shapes("y (n, o), x (n, i), w (i, o), b (o)")


def price(y, x, w, b, relu):
    (n, i), o = x.shape, w.shape[1]
    return 2 * n * i * o + (1 + relu) * n * o, n * i + i * o + o + n * o


def reference(y, x, w, b, relu):
    z = x @ w + b
    y[:] = np.maximum(z, 0) if relu else z


@exact
def cpu(y, x, w, b, relu):
    check(y, x, w, b)
    np.dot(x, w, y)
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            z = y[i, j] + b[j]
            y[i, j] = 0.0 if relu and z < 0 else z


def gpu(y, x, w, b, relu):
    check(y, x, w, b)
    product(y, x, w, b, relu)
