"""Layer norm backward, weight half: the gradients of gain and bias, summed over rows.

    dgain = sum over rows of dy u          dbias = sum over rows of dy

dy, u (rows, width), dgain and dbias (width,). This is W of a split backward pass; see dense_backward_weights.
Price: 3 FLOPs per number; dy and u read once.
"""

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.layers.columns import COLUMNS, ROWS, column_sum, over_columns
from kernels.shapes import shapes

check = shapes("dgain (width), dbias (width), dy (rows, width), u (rows, width)")


def price(dgain, dbias, dy, u):
    rows, width = dy.shape
    return 3 * rows * width, 2 * rows * width + 2 * width


def reference(dgain, dbias, dy, u):
    dgain[:] = (dy * u).sum(0)
    dbias[:] = dy.sum(0)


@exact
def cpu(dgain, dbias, dy, u):
    check(dgain, dbias, dy, u)
    dgain[:] = 0
    dbias[:] = 0
    for i in range(dy.shape[0]):
        for j in range(dy.shape[1]):
            dgain[j] += dy[i, j] * u[i, j]
            dbias[j] += dy[i, j]


@cuda.jit
def _launch(dgain, dbias, dy, u):
    scratch = cuda.shared.array((ROWS, COLUMNS), dy.dtype)
    j = cuda.blockIdx.x * COLUMNS + cuda.threadIdx.x
    total = along = dy.dtype.type(0)
    if j < dgain.size:
        for i in range(cuda.threadIdx.y, dy.shape[0], ROWS):
            along += dy[i, j] * u[i, j]
            total += dy[i, j]
    along, total = column_sum(scratch, along), column_sum(scratch, total)
    if cuda.threadIdx.y == 0 and j < dgain.size:
        dgain[j], dbias[j] = along, total


def gpu(dgain, dbias, dy, u):
    check(dgain, dbias, dy, u)
    _launch[over_columns(dy)](dgain, dbias, dy, u)
