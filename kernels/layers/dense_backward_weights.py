"""Dense backward, weight half: the gradients of weights and biases, which only the optimizer waits for.

    dw = x^T dz          db = sum over samples of dz          x (n, i), dz (n, o), dw (i, o), db (o,)

This is W of a split backward pass: no other layer needs it, so it may fill a bubble. It reads no weights. With `add`
the gradients are added to what dw and db hold, in the same pass; the caller then charges the sum.
Price: 2 n i o + n o FLOPs, and every array once.
Source: Oh et al., "Out-of-Order BackProp", EuroSys 2022, and Qi et al., Zero Bubble Pipeline
Parallelism, ICLR 2024, for the split.
"""

import numpy as np

from kernels.compiled import exact
from kernels.layers.blas import add_product
from kernels.layers.columns import sum_columns
from kernels.layers.tiles import product
from kernels.shapes import shapes

check = shapes("dw (i, o), db (o), x (n, i), dz (n, o)")


def price(dw, db, x, dz, add=False):
    (n, i), o = x.shape, dz.shape[1]
    return 2 * n * i * o + n * o, n * i + n * o + i * o + o


def reference(dw, db, x, dz, add=False):
    dw[:] = dw + x.T @ dz if add else x.T @ dz  # not a product with `add`: where it is 0, dw may hold NaN
    db[:] = db + dz.sum(0) if add else dz.sum(0)


@exact
def cpu(dw, db, x, dz, add=False):
    check(dw, db, x, dz)
    if add:
        add_product(dw, x, dz)
    else:
        np.dot(x.T, dz, dw)
    total = np.zeros_like(db)
    for i in range(dz.shape[0]):
        for j in range(dz.shape[1]):
            total[j] += dz[i, j]
    for j in range(db.size):
        db[j] = db[j] + total[j] if add else total[j]


def gpu(dw, db, x, dz, add=False):
    check(dw, db, x, dz)
    product(dw, x.T, dz, add=add)
    sum_columns(db, dz, add)
